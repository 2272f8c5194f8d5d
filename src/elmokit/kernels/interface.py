"""The interface of a kernel library, parsed from its C source.

Functions for Python have the form ``void elmokit_NAME(STRUCTURE *call, int64_t num_threads)``, or
``int64_t elmokit_NAME(void)`` for a number about the library.
Their structures become `ctypes` classes, the numbers of ``constants.h`` a table. `Interface.check`
then compares all sizes and offsets with those of the compiler.
"""

import ctypes
import functools
import re
from collections.abc import Callable, Mapping
from ctypes import POINTER, Structure, c_float, c_int64, c_void_p
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SOURCE_DIR = Path(__file__).parent / "c"
LAYOUT = "elmokit_layout"
"""The array of a library with its sizes and offsets."""
_SCALARS = {"int64_t": c_int64, "float": c_float}


@dataclass(frozen=True)
class Interface:
    """Functions, structures and constants of one library."""

    name: str
    """Stem of the C file."""
    source: str
    """With all includes."""
    functions: Mapping[str, type[Structure]]
    """Name without ``elmokit_`` -> structure of the arguments."""
    questions: tuple[str, ...]
    """Names, without ``elmokit_``, of the functions that return a number about the library."""
    structures: Mapping[str, type[Structure]]
    """All structures of `functions`, by their C names."""
    pointed: Mapping[type[Structure], Mapping[str, str]]
    """Structure -> pointer field -> C type of its values."""
    constants: Mapping[str, int]
    """``#define NAME number`` of ``constants.h``."""

    def translation_unit(self) -> str:
        """Return the C text to compile: the library and its `LAYOUT`."""
        includes = f'#include "{self.name}.c"\n#include <stddef.h>\n'
        values = ",\n".join(self._layout())
        return f"{includes}const int64_t {LAYOUT}[] = {{\n{values}\n}};\n"

    def check(self, library: ctypes.CDLL) -> None:
        """Raise `RuntimeError` for a library with other functions, structures or constants."""
        for function in (LAYOUT, *(f"elmokit_{one}" for one in (*self.functions, *self.questions))):
            if not hasattr(library, function):
                raise RuntimeError(f"{self.name}.c: the compiled library has no {function}.")
        layout = self._layout()
        found = (c_int64 * len(layout)).in_dll(library, LAYOUT)
        for (what, expected), value in zip(layout.items(), found, strict=True):
            if value != expected:
                raise RuntimeError(
                    f"{self.name}.c: {what} is {value} in the compiled library, {expected} in "
                    "Python: they cannot exchange structures."
                )

    def _layout(self) -> dict[str, int]:
        """Return C expressions and their expected values."""
        layout = dict(self.constants)
        for name, structure in self.structures.items():
            layout[f"sizeof({name})"] = ctypes.sizeof(structure)
            for field, *_ in structure._fields_:
                layout[f"offsetof({name}, {field})"] = getattr(structure, field).offset
        return layout


@functools.cache
def read_interface(name: str) -> Interface:
    """Parse the source of a library."""
    source = "".join(_read_with_includes(SOURCE_DIR / f"{name}.c", []))
    code = re.sub(r"/\*.*?\*/", "", source, flags=re.DOTALL)
    typedefs = re.findall(r"typedef struct \{([^{}]*)\} (\w+);", code)
    bodies: dict[str, str] = {type_name: body for body, type_name in typedefs}
    structures: dict[str, type[Structure]] = {}
    pointed: dict[type[Structure], dict[str, str]] = {}

    def structure(type_name: str) -> type[Structure]:
        if type_name not in structures:
            fields, targets = _fields(bodies[type_name], bodies, structure)
            made = type(type_name, (Structure,), {"_fields_": fields, "__slots__": ()})
            structures[type_name], pointed[made] = made, targets
        return structures[type_name]

    calls = re.findall(r"^void elmokit_(\w+)\((\w+) \*call, int64_t num_threads\)", code, re.M)
    functions = {function: structure(type_name) for function, type_name in calls}
    questions = tuple(re.findall(r"^int64_t elmokit_(\w+)\(void\)", code, re.M))
    numbers = (SOURCE_DIR / "constants.h").read_text(encoding="utf-8")
    constants = {key: int(value) for key, value in re.findall(r"#define (\w+) (\d+)\b", numbers)}
    return Interface(name, source, functions, questions, structures, pointed, constants)


def _read_with_includes(path: Path, seen: list[Path]) -> list[str]:
    """Return the texts of a file and all its includes, each once."""
    if path in seen:
        return []
    seen.append(path)
    text = path.read_text(encoding="utf-8")
    included = [
        part
        for name in re.findall(r'^#include "(.+)"', text, re.M)
        for part in _read_with_includes(path.parent / name, seen)
    ]
    return [*included, text]


def _fields(
    body: str, bodies: Mapping[str, str], structure: Callable[[str], type[Structure]]
) -> tuple[list[tuple[str, Any]], dict[str, str]]:
    """Return the `ctypes` fields of a structure, and the C types of its pointers."""
    fields: list[tuple[str, Any]] = []
    targets: dict[str, str] = {}
    for declaration in filter(None, map(str.strip, body.split(";"))):
        type_name, names = declaration.removeprefix("const ").split(maxsplit=1)
        for name in map(str.strip, names.split(",")):
            if name.startswith("*"):
                is_structure = type_name in bodies
                kind = POINTER(structure(type_name)) if is_structure else c_void_p
                targets[name[1:]] = type_name
            elif type_name in bodies:
                kind = structure(type_name)
            else:
                kind = _SCALARS.get(type_name)
            if kind is None or not name.lstrip("*").isidentifier():
                raise ValueError(f"{declaration!r}: Python cannot mirror this field.")
            fields.append((name.lstrip("*"), kind))
    return fields, targets
