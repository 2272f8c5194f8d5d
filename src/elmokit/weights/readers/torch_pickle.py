"""Pickles of PyTorch, read as descriptions: nothing that they name is imported, called or hashed.

`torch.load` builds whatever a pickle describes, and of a few bytes that can take for ever, such as
for a dictionary key of tuples of tuples. Here an opcode makes one small object, and only plain
containers, numbers, texts and tensors come out; entries whose key is no text are left out.
"""

import pickletools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

MAX_OPCODES = 1_000_000
"""Some 25,000 tensors; a model has hundreds."""
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
_VALUES = {
    "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE", "SHORT_BINUNICODE",
    "BINSTRING", "SHORT_BINSTRING", "BINBYTES", "SHORT_BINBYTES",
}  # fmt: skip


@dataclass(frozen=True)
class PickledName:
    """A class or function that a pickle names."""

    name: str


class _Stack:
    """The state of a pickle's stack machine."""

    def __init__(
        self,
        storage: Callable[..., object],
        functions: dict[str, Callable[..., Any]],
    ) -> None:
        self.values: list[Any] = []
        self._storage, self._functions = storage, functions
        self._marks: list[int] = []
        self._memo: dict[int, Any] = {}

    def step(self, opcode: str, argument: Any) -> None:
        values = self.values
        match opcode:
            case "PROTO" | "FRAME" | "STOP":
                pass
            case "MARK":
                self._marks.append(len(values))
            case "BINPUT" | "LONG_BINPUT":
                self._memo[argument] = values[-1]
            case "MEMOIZE":
                self._memo[len(self._memo)] = values[-1]
            case "BINGET" | "LONG_BINGET":
                values.append(self._memo[argument])
            case "GLOBAL":
                values.append(PickledName(argument.replace(" ", ".", 1)))
            case "EMPTY_DICT":
                values.append({})
            case "EMPTY_LIST":
                values.append([])
            case "TUPLE":
                values.append(tuple(self._since_mark()))
            case "TUPLE1" | "TUPLE2" | "TUPLE3":
                size = int(opcode[-1])
                values[-size:] = [tuple(values[-size:])]
            case "SETITEM":
                _add(values[-3], [values.pop(-2), values.pop()])
            case "SETITEMS":
                pairs = self._since_mark()
                _add(values[-1], pairs)
            case "APPEND":
                last = values.pop()
                values[-1].append(last)
            case "APPENDS":
                rest = self._since_mark()
                values[-1].extend(rest)
            case "BINPERSID":
                values.append(self._storage(*values.pop()))
            case "REDUCE" | "NEWOBJ":
                arguments = values.pop()
                values.append(self.call(values.pop(), arguments))
            case "BUILD":
                values.pop()  # attributes, such as the versions of modules
            case _ if opcode in _VALUES:
                values.append(argument)
            case _ if opcode in _CONSTANTS:
                values.append(_CONSTANTS[opcode])
            case _:
                raise ValueError(f"its pickle has the opcode {opcode}, which no state dict has")

    def call(self, function: Any, arguments: tuple[Any, ...]) -> object:
        """Return what a function makes of its arguments, if it is one of those that are known."""
        if function.name == "torch._tensor._rebuild_from_type_v2":
            return self.call(arguments[0], arguments[2])
        if function.name not in self._functions:
            raise ValueError(
                f"its pickle wants to call `{function.name[:200]}`, and nothing in a file is run. "
                "Save only tensors: torch.save(model.state_dict(), path)"
            )
        return self._functions[function.name](*arguments)

    def _since_mark(self) -> list[Any]:
        start = self._marks.pop()
        rest = self.values[start:]
        del self.values[start:]
        return rest


def read_pickle(
    stream: Any,
    storage: Callable[..., object],
    functions: dict[str, Callable[..., Any]],
) -> Any:
    """Return what the pickle that begins here describes, and stop behind it.

    Args:
        stream: The bytes.
        storage: Makes a storage of what the pickle says of it (a "persistent id").
        functions: What stands for the functions that a pickle may call, by their names there.

    Raises:
        ValueError: if it wants to call another one, or holds what no state dict does.
        Exception: of nearly any class, if it is damaged.
    """
    stack = _Stack(storage, functions)
    for number, (opcode, argument, _) in enumerate(pickletools.genops(stream)):
        if number >= MAX_OPCODES:
            raise ValueError(f"its pickle has more than {MAX_OPCODES:,} opcodes")
        stack.step(opcode.name, argument)
    return stack.values[-1]


def _add(table: Any, pairs: list[Any]) -> None:
    table.update(
        (key, value)
        for key, value in zip(pairs[0::2], pairs[1::2], strict=True)
        if isinstance(key, str)
    )
