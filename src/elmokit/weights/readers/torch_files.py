"""Tensors saved by ``torch.save``, read without running what a pickle says.

`Unpickler` stands for `pickle` in `torch.load`, whose own readers build anything of a few bytes,
such as a dictionary key of tuples of tuples, whose hash takes for ever. Here nothing is imported,
called or hashed that the pickle names; an opcode makes one small object: plain containers, numbers,
texts, tensors. Entries whose key is no text are left out.
"""

import pickletools
import sys
import zipfile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, _utils

from elmokit.errors import FormatError
from elmokit.files.damage import damage

MAX_OPCODES = 1_000_000
"""Some 25,000 tensors; a model has hundreds."""
_VALUES = {
    "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE", "SHORT_BINUNICODE",
    "BINSTRING", "SHORT_BINSTRING", "BINBYTES", "SHORT_BINBYTES",
}  # fmt: skip
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
_CONTAINERS = {"EMPTY_DICT": dict, "EMPTY_LIST": list}
_NUM_TAKEN = {
    "TUPLE": None, "TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3, "SETITEM": 2, "SETITEMS": None,
    "APPEND": 1, "APPENDS": None,
}  # fmt: skip
"""How many values an opcode takes from the stack; None: those since the last mark."""
_NESTING = (tuple, list, dict)
_MAX_SHARED = 8
"""Values of a tuple that may be named twice, if it holds no other container."""


def read_state(path: Path) -> dict[str, Tensor]:
    """Read a state dict: floating-point tensors by name, others left out.

    They may be views of each other's values, and are not checked before `TorchArrays.take`.
    """
    advice = (
        "Only tensors and plain containers are read, as of torch.save(model.state_dict(), path). "
        f"It has {path.stat().st_size:,} bytes."
    )
    with damage(path, advice, what="no whole state dict"):
        is_zip = _check_records(path)
        loaded = torch.load(
            path,
            map_location="cpu",
            mmap=is_zip,
            weights_only=False,
            pickle_module=sys.modules[__name__],
        )
    if not isinstance(loaded, dict):
        raise FormatError(f"{path}: expected tensors by name, got {type(loaded).__name__}.")
    return {
        name: tensor
        for name, tensor in loaded.items()
        if isinstance(tensor, Tensor) and tensor.is_floating_point()
    }


def _check_records(path: Path) -> bool:
    """Tell whether a file is a zip archive, of tensors and no program, and not compressed."""
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
    if any(member.filename.endswith("/constants.pkl") for member in members):
        raise ValueError("a TorchScript program")
    packed = any(member.compress_type != zipfile.ZIP_STORED for member in members)
    if packed or sum(member.file_size for member in members) > path.stat().st_size:
        raise ValueError("its records are compressed, which torch.save never does")
    return True


def _texts(pairs: Any = ()) -> dict[str, Any]:
    return {key: value for key, value in pairs if isinstance(key, str)}


_FUNCTIONS = {
    "collections OrderedDict": _texts,
    "torch._utils _rebuild_tensor": _utils._rebuild_tensor,
    "torch._utils _rebuild_tensor_v2": _utils._rebuild_tensor_v2,
    "torch._utils _rebuild_parameter": lambda tensor, *_: tensor,
    "torch._utils _rebuild_parameter_with_state": lambda tensor, *_: tensor,
}


class Unpickler:
    """What `torch.load` needs of `pickle.Unpickler`; it adds how storages are found and read.

    What no state dict holds raises `ValueError`; damage raises nearly anything.
    """

    persistent_load: Any
    find_class: Any

    def __init__(self, file: Any, **_: Any) -> None:
        self._file = file
        self._values: list[Any] = []
        self._marks: list[int] = []
        self._memo: dict[int, Any] = {}

    def load(self) -> Any:
        """Return what the pickle that begins here describes, and stop behind it."""
        for number, (opcode, argument, _) in enumerate(pickletools.genops(self._file)):
            if number >= MAX_OPCODES:
                raise ValueError(f"its pickle has more than {MAX_OPCODES:,} opcodes")
            self._step(opcode.name, argument)
        return self._values[-1]

    def _step(self, opcode: str, argument: Any) -> None:
        values = self._values
        if opcode in _VALUES:
            values.append(argument)
        elif opcode == "GLOBAL":
            is_storage = argument.startswith("torch ") and argument.endswith("Storage")
            values.append(self.find_class(*argument.split()) if is_storage else _Name(argument))
        elif opcode in _CONSTANTS:
            values.append(_CONSTANTS[opcode])
        elif opcode in _CONTAINERS:
            values.append(_CONTAINERS[opcode]())
        elif opcode in ("BINPUT", "LONG_BINPUT", "MEMOIZE"):
            self._memo[len(self._memo) if argument is None else argument] = values[-1]
        elif opcode in ("BINGET", "LONG_BINGET"):
            values.append(_checked(self._memo[argument]))
        elif opcode == "MARK":
            self._marks.append(len(values))
        elif opcode == "BINPERSID":
            persistent_id = values.pop()
            if any(isinstance(part, _NESTING) for part in persistent_id):
                raise ValueError("its pickle describes no storage")
            values.append(self.persistent_load(persistent_id))
        elif opcode == "REDUCE":
            arguments, function = values.pop(), values.pop()
            values.append(_called(function, arguments))
        elif opcode == "BUILD":
            values.pop()  # attributes, such as the versions of modules
        elif opcode not in ("PROTO", "FRAME", "STOP"):
            self._fill(opcode)

    def _fill(self, opcode: str) -> None:
        """Make a tuple of the last values, or add them to the container before them."""
        if opcode not in _NUM_TAKEN:
            raise ValueError(f"its pickle has the opcode {opcode}, which no state dict has")
        num_taken = _NUM_TAKEN[opcode]
        start = self._marks.pop() if num_taken is None else len(self._values) - num_taken
        rest = self._values[start:]
        del self._values[start:]
        if opcode.startswith("TUPLE"):
            self._values.append(tuple(rest))
        elif opcode.startswith("APPEND"):
            self._values[-1].extend(rest)
        else:
            self._values[-1].update(_texts(zip(rest[0::2], rest[1::2], strict=True)))


class _Name(str):
    """A class or function that a pickle names."""


def load(file: Any, **_: Any) -> Any:
    """Read one pickle, as `pickle.load` does."""
    return Unpickler(file).load()


def _checked(named_again: Any) -> Any:
    # so that what is made is a tree, never much larger than the pickle: pairs of the same pair, of
    # the same pair … take for ever to walk through
    is_short = isinstance(named_again, tuple) and len(named_again) <= _MAX_SHARED
    if isinstance(named_again, _NESTING) and not (
        is_short and not any(isinstance(part, _NESTING) for part in named_again)
    ):
        raise ValueError("its pickle names a container twice, which no state dict does")
    return named_again


def _called(function: Any, arguments: tuple[Any, ...]) -> object:
    if not isinstance(function, _Name):
        raise TypeError("its pickle calls what is no function")
    if function not in _FUNCTIONS:
        name = function.replace(" ", ".", 1)[:200]
        raise ValueError(f"its pickle wants to call `{name}`, but nothing in a file is run")
    return _FUNCTIONS[function](*arguments)
