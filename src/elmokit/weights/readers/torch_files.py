"""Tensors saved by ``torch.save``, read without running what a pickle says.

`Unpickler` stands for `pickle` in `torch.load`, whose own readers build anything of a few bytes,
such as a dictionary key of tuples of tuples, whose hash takes for ever. Here nothing is imported,
called or hashed that the pickle names; an opcode makes one small object: plain containers, numbers,
texts, tensors. Entries whose key is no text are left out.
"""

import pickletools
import sys
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, _utils

from elmokit.bilm.config import FORGET_OFFSET, MAX_LAYERS
from elmokit.errors import FormatError
from elmokit.files.lines import check_growth
from elmokit.files.sources import damage
from elmokit.weights.arrays import check_finite
from elmokit.weights.bilm_tf_layout import swap_gates

MAX_OPCODES = 1_000_000
"""Some 25,000 tensors; a model has hundreds."""
_MAX_SHARED = 8
"""Length of the longest tuple without containers that may be named again."""
_VALUES = {
    "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE", "SHORT_BINUNICODE",
    "BINSTRING", "SHORT_BINSTRING", "BINBYTES", "SHORT_BINBYTES",
}  # fmt: skip
_NEW = {
    "NONE": lambda: None, "NEWTRUE": lambda: True, "NEWFALSE": lambda: False,
    "EMPTY_TUPLE": tuple, "EMPTY_DICT": dict, "EMPTY_LIST": list,
}  # fmt: skip
_NUM_TAKEN = {
    "TUPLE": None, "TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3, "SETITEM": 2, "SETITEMS": None,
    "APPEND": 1, "APPENDS": None,
}  # fmt: skip
"""How many values an opcode takes from the stack; None: those since the last mark."""


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
            path, map_location="cpu", mmap=is_zip, weights_only=False,
            pickle_module=sys.modules[__name__],
        )  # fmt: skip
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


class _Name(str):
    """A class or function that a pickle names."""


def load(file: Any, **_: Any) -> Any:
    """Read one pickle, as `pickle.load` does."""
    return Unpickler(file).load()


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
        elif opcode in _NEW:
            values.append(_NEW[opcode]())
        elif opcode == "GLOBAL":
            is_storage = argument.startswith("torch ") and argument.endswith("Storage")
            values.append(self.find_class(*argument.split()) if is_storage else _Name(argument))
        elif opcode in ("BINPUT", "LONG_BINPUT", "MEMOIZE"):
            self._memo[len(self._memo) if argument is None else argument] = values[-1]
        elif opcode in ("BINGET", "LONG_BINGET"):
            # what is made must be a tree: pairs of the same pair, of … take for ever to walk; the
            # states of optimizers share a pair of numbers
            shared = self._memo[argument]
            is_flat = isinstance(shared, tuple) and not any(map(_is_container, shared))
            if _is_container(shared) and not (is_flat and len(shared) <= _MAX_SHARED):
                raise ValueError("its pickle names a container twice, which no state dict does")
            values.append(shared)
        elif opcode == "MARK":
            self._marks.append(len(values))
        elif opcode == "BINPERSID":
            if any(map(_is_container, values[-1])):
                raise ValueError("its pickle describes no storage")
            values.append(self.persistent_load(values.pop()))
        elif opcode == "REDUCE":
            arguments = values.pop()
            values.append(_function(values.pop())(*arguments))
        elif opcode == "BUILD":
            values.pop()  # attributes, such as the versions of modules
        elif opcode in _NUM_TAKEN:
            self._fill(opcode, _NUM_TAKEN[opcode])
        elif opcode not in ("PROTO", "FRAME", "STOP"):
            raise ValueError(f"its pickle has the opcode {opcode}, which no state dict has")

    def _fill(self, opcode: str, num_taken: int | None) -> None:
        """Make a tuple of the last values, or add them to the container before them."""
        start = self._marks.pop() if num_taken is None else len(self._values) - num_taken
        rest = self._values[start:]
        del self._values[start:]
        if opcode.startswith("TUPLE"):
            self._values.append(tuple(rest))
        elif opcode.startswith("APPEND"):
            self._values[-1].extend(rest)
        else:
            self._values[-1].update(_texts(zip(rest[0::2], rest[1::2], strict=True)))


def _is_container(value: object) -> bool:
    return isinstance(value, tuple | list | dict)


def _function(name: object) -> Callable[..., Any]:
    if isinstance(name, _Name) and name in _FUNCTIONS:
        return _FUNCTIONS[name]
    shown = name.replace(" ", ".", 1)[:200] if isinstance(name, str) else type(name).__name__
    raise ValueError(f"its pickle wants to call `{shown}`, but nothing in a file is run")


class TorchArrays:
    """An `ArraySource` of the tensors below a prefix of a state dict.

    `take` takes tensors out, `add` gives arrays the original's names, and `add_bilm` does so with
    all that are left of a biLM but its embeddings.
    """

    def __init__(self, state: Mapping[str, Tensor], prefix: str, path: Path) -> None:
        self.path, self.prefix = path, prefix
        self._arrays: dict[str, np.ndarray] = {}
        self._left = {
            name.removeprefix(prefix): tensor
            for name, tensor in state.items()
            if name.startswith(prefix)
        }
        storages = (tensor.untyped_storage() for tensor in state.values())
        # tensors may be views of one storage, which counts once
        self.num_bytes = sum({part.data_ptr(): part.nbytes() for part in storages}.values())
        self._num_taken = 0

    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {name: array.shape for name, array in self._arrays.items()}

    def dataset(self, name: str) -> np.ndarray | None:
        return self._arrays.get(name)

    def read(self, dataset: np.ndarray) -> np.ndarray:
        return dataset

    def count(self, pattern: str) -> int:
        """Return how many names there are of a pattern with ``{}`` for 0, 1, 2, …."""
        number = 0
        while number <= MAX_LAYERS and pattern.format(number) in self._left:
            number += 1
        return number

    def take(self, name: str, rank: int) -> np.ndarray:
        """Take out a tensor of so many dimensions, as fp32; together they stay in bounds."""
        tensor = self._left.pop(name, None)
        if tensor is None or tensor.dim() != rank or tensor.numel() == 0:
            shape = "is missing" if tensor is None else f"has shape {tuple(tensor.shape)}"
            raise FormatError(
                f"{self.path}: tensor `{self.prefix}{name}` {shape}; expected {rank} dimension(s)."
            )
        # a view can state any shape by steps of 0, without data for it
        self._num_taken += 4 * tensor.numel()
        check_growth(self.path, self._num_taken, self.num_bytes)
        array = tensor.detach().to(torch.float32).contiguous().numpy()
        check_finite(array, self.prefix + name, self.path)
        return array

    def add(self, name: str, array: np.ndarray) -> None:
        self._arrays[name] = array

    def add_bilm(self, *, filters: str, highways: str, projection: str, lstm: str) -> None:
        """Add character CNN and LSTMs, and refuse tensors that have no place in them.

        The arguments are what the parts are called, with ``{}`` for a number; ``lstm`` is the
        prefix of the layers ``forward_layer_{}`` and ``backward_layer_{}``.
        """
        for i in range(self.count(f"{filters}.weight")):
            kernel = self.take(f"{filters.format(i)}.weight", 3)  # (out, in, width)
            self.add(f"CNN/W_cnn_{i}", kernel.transpose(2, 1, 0)[np.newaxis])
            self.add(f"CNN/b_cnn_{i}", self.take(f"{filters.format(i)}.bias", 1))
        for k in range(self.count(f"{highways}.weight")):
            for part, letter, rank in (("weight", "W", 2), ("bias", "b", 1)):
                both = self.take(f"{highways.format(k)}.{part}", rank)
                transform, keep = np.array_split(both, 2)
                # their gate is the share that is kept: 1 - sigmoid(x) = sigmoid(-x)
                self.add(f"CNN_high_{k}/{letter}_transform", transform.T)
                self.add(f"CNN_high_{k}/{letter}_carry", -keep.T)
        self.add("CNN_proj/W_proj", self.take(f"{projection}.weight", 2).T)
        self.add("CNN_proj/b_proj", self.take(f"{projection}.bias", 1))
        for number, direction in enumerate(("forward", "backward")):
            layers = f"{lstm}{direction}_layer_{{}}."
            for layer in range(max(1, self.count(f"{layers}state_projection.weight"))):
                ours = f"RNN_{number}/RNN/MultiRNNCell/Cell{layer}/LSTMCell/"
                self._add_lstm(layers.format(layer), ours)
        if self._left:
            raise FormatError(
                f"{self.path}: tensor `{self.prefix}{min(self._left)}` has no place in the biLM "
                "that the other tensors describe."
            )

    def _add_lstm(self, theirs: str, ours: str) -> None:
        inputs = self.take(f"{theirs}input_linearity.weight", 2)
        recurrent = self.take(f"{theirs}state_linearity.weight", 2)
        bias = self.take(f"{theirs}state_linearity.bias", 1)
        if len({len(inputs), len(recurrent), len(bias)}) > 1 or len(bias) % 4:
            raise FormatError(
                f"{self.path}: the tensors `{self.prefix}{theirs}*_linearity.*` do not belong "
                "together: they must have four rows for each cell."
            )
        bias = bias.copy()
        bias[len(bias) // 4 : len(bias) // 2] -= np.float32(FORGET_OFFSET)
        self.add(f"{ours}W_0", swap_gates(np.concatenate((inputs.T, recurrent.T)), axis=1))
        self.add(f"{ours}B", swap_gates(bias))
        self.add(f"{ours}W_P_0", self.take(f"{theirs}state_projection.weight", 2).T)
