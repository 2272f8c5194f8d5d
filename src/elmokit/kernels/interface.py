"""The interface of a kernel library, parsed from its C source.

Functions for Python have the form ``void elmokit_NAME(STRUCTURE *call, int64_t num_threads)``.
Their structures become `ctypes` classes, the numbers of ``constants.h`` a table. Names and hashes
of libraries contain their source, so a library always has the structures that are read here.
"""

import functools
import re
from collections.abc import Mapping
from ctypes import POINTER, Structure, c_float, c_int64, c_void_p
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SOURCE_DIR = Path(__file__).parent / "c"
_SCALARS = {"int64_t": c_int64, "float": c_float}


@dataclass(frozen=True)
class Interface:
    source: str
    """With all includes."""
    functions: Mapping[str, type[Structure]]
    """Name without ``elmokit_`` -> structure of the arguments."""
    structures: Mapping[str, type[Structure]]
    """By their C names."""
    pointed: Mapping[type[Structure], Mapping[str, str]]
    """Structure -> pointer field -> C type of its values."""
    constants: Mapping[str, int]
    """``#define NAME number`` of ``constants.h``."""


@functools.cache
def read_interface(name: str) -> Interface:
    source = "".join(_read_with_includes(SOURCE_DIR / f"{name}.c", []))
    code = re.sub(r"/\*.*?\*/", "", source, flags=re.DOTALL)
    structures: dict[str, type[Structure]] = {}
    pointed: dict[type[Structure], dict[str, str]] = {}
    # C defines a structure before it is used, so those inside others are known in time.
    for body, type_name in re.findall(r"typedef struct \{([^{}]*)\} (\w+);", code):
        fields, targets = _fields(body, structures)
        if None not in fields.values():  # else the library's own, which Python never passes
            mirrored = {"_fields_": list(fields.items()), "__slots__": ()}
            structures[type_name] = type(type_name, (Structure,), mirrored)
            pointed[structures[type_name]] = targets
    calls = re.findall(r"^void elmokit_(\w+)\((\w+) \*call, int64_t num_threads\)", code, re.M)
    functions = {function: structures[type_name] for function, type_name in calls}
    numbers = (SOURCE_DIR / "constants.h").read_text(encoding="utf-8")
    constants = {key: int(value) for key, value in re.findall(r"#define (\w+) (\d+)\b", numbers)}
    return Interface(source, functions, structures, pointed, constants)


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
    body: str, structures: Mapping[str, type[Structure]]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the fields of a structure, None for what Python cannot mirror; targets of pointers."""
    fields: dict[str, Any] = {}
    targets: dict[str, str] = {}
    for declaration in filter(None, map(str.strip, body.split(";"))):
        type_name, names = declaration.removeprefix("const ").split(maxsplit=1)
        known = {**_SCALARS, **structures}.get(type_name)
        for name in map(str.strip, names.split(",")):
            field = name.removeprefix("*")
            if not field.isidentifier():  # an array, or a type of several words
                fields[field] = None
            elif name == field:
                fields[field] = known
            else:
                is_structure = type_name in structures
                fields[field] = POINTER(structures[type_name]) if is_structure else c_void_p
                targets[field] = type_name
    return fields, targets
