"""Load the C kernels: those that came with the package, or compiled for this processor, once.

Compiled libraries lie in the user's cache as ``KEY.so``. The key is a hash of sources, compiler,
flags and processor. One that others could have written is never loaded.
"""

import ctypes
import functools
import hashlib
import logging
import os
import platform
import re
import shlex
import shutil
from collections.abc import Mapping
from ctypes import POINTER, Structure, c_float, c_int64, c_void_p
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmokit.files.atomic import atomic_file
from elmokit.files.temporary import cache_dir, make_directory, scratch_directory, why_untrusted

log = logging.getLogger(__name__)

SOURCE_DIR = Path(__file__).parent / "c"
PREBUILT_DIR = Path(__file__).parent / "prebuilt"
SWITCH = "ELMOKIT_NATIVE"
"""Environment variable: 0 uses none, ``compile`` no prebuilt libraries."""
FLAGS = (
    "-O3", "-std=gnu11", "-shared", "-fPIC", "-pthread",
    "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast", "-fno-strict-aliasing",
)  # fmt: skip
NATIVE_FLAGS = (("-march=native",), ("-mcpu=native",), ())
"""Flags for all instructions of this processor; compilers differ."""
INSTEAD = (
    "there are no compiled kernels: everything is computed more slowly, and there are other values "
    f"on long machine-like sentences, where rounding grows ({SWITCH}=0 turns this message off)"
)
LIBRARY_PATTERN = (
    r"((inference|training|compiler)-[0-9a-f]{20}(-[0-9a-f]{20})?|\.?new-[0-9a-f]{32})\..+"
)
"""Names of the files in the cache, those of earlier versions among them."""
_SCALARS = {"int64_t": c_int64, "float": c_float}
_V2 = frozenset({"cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3"})
_V3 = _V2 | {"abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "xsave"}
_V4 = _V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
_VNNI = _V4 | {"avx512_vnni"}
_BF16 = _VNNI | {"avx512_bf16"}
_AMX = _BF16 | {"amx_tile", "amx_bf16", "amx_int8"}
_DOT = frozenset({"asimddp"})
_DOT_BF16 = _DOT | {"bf16"}


@dataclass(frozen=True)
class Variant:
    """Processors for which a library is compiled."""

    name: str
    machine: str
    """As in the platform tags of wheels: ``x86_64`` or ``aarch64``."""
    processor: str
    """As zig names it."""
    instructions: frozenset[str] = frozenset()
    """That a processor must have, as Linux names them in ``/proc/cpuinfo``."""


VARIANTS = (
    Variant(
        "x86-64-v4-amx", "x86_64",
        "x86_64_v4+avx512vnni+avx512bf16+amx_tile+amx_bf16+amx_int8", _AMX,
    ),
    Variant("x86-64-v4-bf16", "x86_64", "x86_64_v4+avx512vnni+avx512bf16", _BF16),
    Variant("x86-64-v4-vnni", "x86_64", "x86_64_v4+avx512vnni", _VNNI),
    Variant("x86-64-v4", "x86_64", "x86_64_v4", _V4),
    Variant("x86-64-v3", "x86_64", "x86_64_v3", _V3),
    Variant("x86-64-v2", "x86_64", "x86_64_v2", _V2),
    Variant("armv8.2-a-bf16", "aarch64", "generic+v8_2a+dotprod+bf16", _DOT_BF16),
    Variant("armv8.2-a-dotprod", "aarch64", "generic+v8_2a+dotprod", _DOT),
    Variant("armv8-a", "aarch64", "generic"),
)  # fmt: skip
"""The quickest first."""
ASKED = {
    "Windows": {41: _V4, 40: _V3, 38: _V2, 43: _DOT},
    "Darwin": {"avx2_0": _V3, "arm.FEAT_BF16": _DOT_BF16, "arm.FEAT_DotProd": _DOT},
}
"""Features that systems without ``/proc/cpuinfo`` are asked for, the most first: numbers of
`IsProcessorFeaturePresent`, names below ``hw.optional`` of `sysctlbyname`.
"""


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


def library_file(name: str, variant: Variant, system: str) -> str:
    """Return the file name of a library; ``system`` as `platform.system` returns it."""
    return f"{name}-{variant.name}{'.dll' if system == 'Windows' else '.so'}"


def find_prebuilt(name: str) -> Path | None:
    """Return the quickest library for this processor, or None if there is no suitable one."""
    names = (library_file(name, variant, platform.system()) for variant in _variants_here())
    return next((path for path in map(PREBUILT_DIR.joinpath, names) if path.is_file()), None)


@functools.cache
def _variants_here() -> tuple[Variant, ...]:
    names = {"AMD64": "x86_64", "arm64": "aarch64", "ARM64": "aarch64"}
    machine, here = names.get(platform.machine(), platform.machine()), _instructions()
    return tuple(v for v in VARIANTS if v.machine == machine and v.instructions <= here)


def _instructions() -> frozenset[str]:
    lines = _cpu_info()
    if lines is None:
        features = ASKED.get(platform.system(), {})
        return next((names for feature, names in features.items() if _has(feature)), _V2)
    starts = ("flags", "Features")  # of x86 and ARM
    return frozenset(next((line for line in lines if line.startswith(starts)), "").split())


def _cpu_info() -> list[str] | None:
    info = Path("/proc/cpuinfo")
    return info.read_text(errors="replace").splitlines() if info.is_file() else None


def _has(feature: int | str) -> bool:
    if isinstance(feature, int):
        return bool(getattr(ctypes, "windll").kernel32.IsProcessorFeaturePresent(feature))  # noqa: B009
    value, size = ctypes.c_int(0), ctypes.c_size_t(ctypes.sizeof(ctypes.c_int))
    name = f"hw.optional.{feature}".encode()
    failed = ctypes.CDLL(None).sysctlbyname(
        name, ctypes.byref(value), ctypes.byref(size), None, ctypes.c_size_t(0)
    )
    return not failed and bool(value.value)


@functools.cache
def load_library(name: str) -> ctypes.CDLL | None:
    """Return the library of ``c/<name>.c``, or None where there is none (logged)."""
    choice = os.environ.get(SWITCH, "1")
    if choice == "0":
        say_once(f"compiled kernels are switched off ({SWITCH}=0): NumPy is used, more slowly")
        return None
    problem = ""
    for find in (find_compiled,) if choice == "compile" else (find_prebuilt, find_compiled):
        try:
            path = find(name)
            if path is not None:
                log.debug("%s kernels: %s%s", name, path, problem and f", because {problem}")
                return ctypes.CDLL(str(path))
        except (OSError, RuntimeError, ValueError, LookupError, TypeError) as error:
            problem = f"{problem}; {error}".removeprefix("; ")
    say_once(f"{INSTEAD}: {problem}", logging.WARNING)
    return None


@functools.cache
def say_once(message: str, level: int = logging.INFO) -> None:
    """Log what computes instead of the kernels, once for all libraries and models."""
    log.log(level, message)


def find_compiled(name: str) -> Path:
    """Return a library for this processor from the user's cache, compiled if it is not there."""
    compiler = _compiler()
    if compiler is None:
        raise OSError("no C compiler found (CC, or cc, gcc, clang)")
    directory = cache_dir("native")
    make_directory(directory)
    if (reason := why_untrusted(directory)) is not None:
        raise PermissionError(
            f"{reason}: code that others could have put there is not loaded. Make it yours alone "
            "(chown, chmod go-w), or set XDG_CACHE_HOME to a directory of your own."
        )
    made_by = compiler, os.stat(compiler[0]).st_mtime, FLAGS, NATIVE_FLAGS, _processor()
    depends_on = repr((read_interface(name).source, *made_by))
    digest = hashlib.sha256(depends_on.encode()).hexdigest()[:20]
    path = directory.resolve() / f"{name}-{digest}.so"
    if path.exists():
        if (reason := why_untrusted(path)) is None:
            return path
        log.warning("%s: compiling it again", reason)
        path.unlink(missing_ok=True)
    log.info("compiling the kernels for this processor with %s", shlex.join(compiler))
    with scratch_directory("elmokit-kernels") as folder:
        _compile(name, compiler, folder / "library.so")
        # other processes may do the same
        with atomic_file(path, mode=0o700) as temp_path:
            temp_path.write_bytes((folder / "library.so").read_bytes())
    return path


def _compiler() -> tuple[str, ...] | None:
    """Return the C compiler: ``CC``, which may have arguments, or a usual one."""
    wanted = shlex.split(os.environ.get("CC", ""))
    for program, *options in [wanted] if wanted else [["cc"], ["gcc"], ["clang"]]:
        if (path := shutil.which(program)) is not None:
            return (path, *options)
    return None


def _compile(name: str, compiler: tuple[str, ...], target: Path) -> None:
    """Compile a library with the first set of flags that the compiler accepts."""
    import subprocess

    errors: list[str] = []
    source = ("-I", str(SOURCE_DIR), str(SOURCE_DIR / f"{name}.c"))
    for native in NATIVE_FLAGS:
        command = [*compiler, *FLAGS, *native, *source, "-o", str(target), "-lm"]
        process = subprocess.run(command, capture_output=True)
        if process.returncode == 0:
            return
        errors.append(process.stderr.decode(errors="replace"))
    raise OSError(f"{shlex.join(compiler)} refused the kernels: {errors[0][:500]}")


@functools.cache
def _processor() -> str:
    """Return what identifies the instructions of this processor, and the C library."""
    names = ("flags", "Features", "model name", "CPU part")
    lines = {line for line in _cpu_info() or () if line.startswith(names)}
    machine = (platform.machine(), platform.system(), *platform.libc_ver())
    return "\n".join([*machine, *sorted(lines)])
