"""Compile the C kernels for this processor, once, and load them.

The name of a library in the user's cache is a hash of sources, compiler, flags and processor.
"""

import ctypes
import functools
import hashlib
import logging
import os
import platform
import shlex
import shutil
import subprocess
import uuid
from pathlib import Path

from elmokit.files.atomic import atomic_file
from elmokit.files.cache_dir import cache_dir
from elmokit.kernels.interface import SOURCE_DIR, read_interface

log = logging.getLogger(__name__)

SWITCH = "ELMOKIT_NATIVE"
"""Environment variable: 0 uses PyTorch only."""
FLAGS = (
    "-O3", "-std=gnu11", "-shared", "-fPIC", "-pthread",
    "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast", "-fno-strict-aliasing",
)  # fmt: skip
NATIVE_FLAGS = (("-march=native",), ("-mcpu=native",), ())
"""Flags for all instructions of this processor; compilers differ."""
TIMEOUT_SECONDS = 120
LIBRARY_PATTERN = r"(inference|training)-[0-9a-f]{20}\..+"
"""Names of the files in the cache."""


@functools.cache
def load_library(name: str) -> ctypes.CDLL | None:
    """Return the library of ``c/<name>.c``, or None where it cannot be built (logged)."""
    if os.environ.get(SWITCH, "1") == "0":
        say_once(f"compiled kernels are switched off ({SWITCH}=0): PyTorch computes, slower")
        return None
    try:
        compiler = _compiler()
        if compiler is None:
            say_once(
                "no C compiler found (cc, gcc, clang): PyTorch computes everything, slower",
                logging.WARNING,
            )
            return None
        return _load(name, compiler)
    except (OSError, RuntimeError, ValueError, subprocess.SubprocessError) as error:
        say_once(
            "the compiled kernels could not be built or loaded: PyTorch computes everything, "
            f"slower; {SWITCH}=0 turns this message off. {error}",
            logging.WARNING,
        )
        return None


@functools.cache
def say_once(message: str, level: int = logging.INFO) -> None:
    """Log what computes instead of the kernels, once for all libraries and models."""
    log.log(level, message)


def _compiler() -> tuple[str, ...] | None:
    """Return the C compiler: ``CC``, which may have arguments, or a usual one."""
    given = os.environ.get("CC", "")
    for command in (given, "cc", "gcc", "clang"):
        words = shlex.split(command)
        found = shutil.which(words[0]) if words else None
        if found is not None:
            return (found, *words[1:])
        if words and command is given:
            log.warning("CC=%s is not found: trying cc, gcc, clang", given)
    return None


def _load(name: str, compiler: tuple[str, ...]) -> ctypes.CDLL:
    path = _build(name, compiler)
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        log.warning("%s cannot be loaded (%s): compiling it again", path, error)
        path.unlink(missing_ok=True)
        library = ctypes.CDLL(str(_build(name, compiler)))
    read_interface(name).check(library)
    return library


def _build(name: str, compiler: tuple[str, ...]) -> Path:
    interface = read_interface(name)
    unit = interface.translation_unit()
    depends_on = (interface.source, unit, compiler, os.stat(compiler[0]).st_mtime, FLAGS)
    digest = hashlib.sha256(repr((*depends_on, NATIVE_FLAGS, _processor())).encode())
    target = cache_dir("native") / f"{name}-{digest.hexdigest()[:20]}.so"
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    log.info("compiling the kernels for this processor with %s", shlex.join(compiler))
    own = target.with_name(f"{target.stem}-{uuid.uuid4().hex}.so")  # others may compile it, too
    with atomic_file(own) as temp_path:
        _compile(compiler, unit, temp_path)
    own.replace(target)
    return target


def _compile(compiler: tuple[str, ...], unit: str, target: Path) -> None:
    """Compile C text with the first set of flags that the compiler accepts."""
    said = ""
    source = ("-I", str(SOURCE_DIR), "-x", "c", "-")
    for native in NATIVE_FLAGS:
        done = subprocess.run(
            [*compiler, *FLAGS, *native, *source, "-o", str(target), "-lm"],
            input=unit, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False,
        )  # fmt: skip
        if done.returncode == 0:
            return
        said = said or done.stderr
    raise OSError(f"{shlex.join(compiler)} refused the kernels: {said[:500]}")


@functools.cache
def _processor() -> str:
    """Return what identifies the instructions of this processor."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(errors="replace").splitlines() if info.exists() else []
    wanted = ("flags", "Features", "model name", "CPU part")
    found = {line for line in lines if line.startswith(wanted)}
    return "\n".join([platform.machine(), platform.processor(), platform.system(), *sorted(found)])
