"""Load the C kernels: those that came with the package, or compiled for this processor, once.

The key of a library in the user's cache is a hash of sources, compiler, flags and processor.
"""

import ctypes
import functools
import hashlib
import logging
import os
import platform
import shlex
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from elmokit.kernels.interface import SOURCE_DIR, read_interface
from elmokit.kernels.library_files import (
    add_library,
    find_library,
    library_dir,
    recent_stall,
    remember_stall,
)
from elmokit.kernels.prebuilt import PREBUILT_DIR, find_prebuilt

log = logging.getLogger(__name__)

SWITCH = "ELMOKIT_NATIVE"
"""Environment variable: 0 uses PyTorch only, ``compile`` no prebuilt libraries."""
FLAGS = (
    "-O3", "-std=gnu11", "-shared", "-fPIC", "-pthread",
    "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast", "-fno-strict-aliasing",
)  # fmt: skip
NATIVE_FLAGS = (("-march=native",), ("-mcpu=native",), ())
"""Flags for all instructions of this processor; compilers differ."""
INSTEAD = (
    "PyTorch computes everything, more slowly, and other values on long machine-like sentences, "
    "where rounding grows"
)
COMPILER_SECONDS = 60
"""A compiler that takes longer (usual: 4) is stopped, and left alone for a day."""


@functools.cache
def load_library(name: str) -> ctypes.CDLL | None:
    """Return the library of ``c/<name>.c``, or None where there is none (logged)."""
    choice = os.environ.get(SWITCH, "1")
    if choice == "0":
        say_once(f"compiled kernels are switched off ({SWITCH}=0): PyTorch is used, more slowly")
        return None
    if choice != "compile" and (library := _load_prebuilt(name)) is not None:
        return library
    try:
        compiler = _compiler()
        if compiler is None:
            say_once(f"no C compiler found (cc, gcc, clang): {INSTEAD}", logging.WARNING)
            return None
        return _load(name, compiler)
    except (OSError, RuntimeError, ValueError) as error:
        say_once(
            f"the compiled kernels could not be built or loaded: {INSTEAD}. {SWITCH}=0 turns this "
            f"message off. {error}",
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


def origin(name: str) -> str:
    """Say what computes: prebuilt kernels, kernels compiled on this machine, or PyTorch."""
    library = load_library(name)
    if library is None:
        return "PyTorch, without compiled kernels"
    path = Path(library._name)
    if path.parent == PREBUILT_DIR:
        return f"prebuilt kernels ({path.stem.removeprefix(f'{name}-')})"
    return "kernels compiled on this machine"


def _load_prebuilt(name: str) -> ctypes.CDLL | None:
    try:
        path = find_prebuilt(name)
        return None if path is None else _open(name, path)
    except (OSError, RuntimeError, ValueError, LookupError, TypeError) as error:
        log.warning("kernels that came with the package cannot be loaded: %s", error)
        return None


def _load(name: str, compiler: tuple[str, ...]) -> ctypes.CDLL:
    return _open(name, _build(name, compiler))


def _open(name: str, path: Path) -> ctypes.CDLL:
    library = ctypes.CDLL(str(path))
    read_interface(name).check(library)
    log.debug("%s kernels: %s", name, path)
    return library


def _build(name: str, compiler: tuple[str, ...]) -> Path:
    """Return the path of the library, compiled if it is not there."""
    directory, interface = library_dir(), read_interface(name)
    unit, which = interface.translation_unit(), (compiler, os.stat(compiler[0]).st_mtime)
    key = _key(name, interface.source, unit, which, FLAGS, NATIVE_FLAGS, _processor())
    found = find_library(directory, key)
    if found is not None:
        return found
    stall_key = _key("compiler", which)
    stall = recent_stall(directory, stall_key)
    if stall is None:
        log.info("compiling the kernels for this processor with %s", shlex.join(compiler))
        try:
            return add_library(directory, key, lambda path: _compile(compiler, unit, path))
        except subprocess.TimeoutExpired:
            stall = remember_stall(directory, stall_key)
    raise TimeoutError(
        f"{shlex.join(compiler)} did not finish within {COMPILER_SECONDS} s. It is tried again "
        f"after a day; remove {stall} to try sooner, or set CC to another compiler."
    )


def _key(name: str, *depends_on: object) -> str:
    return f"{name}-{hashlib.sha256(repr(depends_on).encode()).hexdigest()[:20]}"


def _compile(compiler: tuple[str, ...], unit: str, target: Path) -> None:
    """Compile C text with the first set of flags that the compiler accepts."""
    said = ""
    source = ("-I", str(SOURCE_DIR), "-x", "c", "-")
    deadline = time.monotonic() + COMPILER_SECONDS
    for native in NATIVE_FLAGS:
        status, errors = _run(
            [*compiler, *FLAGS, *native, *source, "-o", str(target), "-lm"], unit,
            seconds=deadline - time.monotonic(),
        )  # fmt: skip
        if status == 0:
            return
        said = said or errors
    raise OSError(f"{shlex.join(compiler)} refused the kernels: {said[:500]}")


def _run(command: list[str], text: str, *, seconds: float) -> tuple[int, str]:
    """Run a command on a text; return its exit code and errors. A late one dies with its children.

    Raises:
        subprocess.TimeoutExpired: if it takes longer than ``seconds``.
    """
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdin=pipe, stdout=subprocess.DEVNULL, stderr=pipe, encoding="utf-8",
        errors="replace", start_new_session=True,
    ) as process:  # fmt: skip
        try:
            _, errors = process.communicate(text, timeout=seconds)
        except BaseException:  # also Ctrl-C
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise
    return process.returncode, errors


@functools.cache
def _processor() -> str:
    """Return what identifies the instructions of this processor, and the C library."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(errors="replace").splitlines() if info.exists() else []
    wanted = ("flags", "Features", "model name", "CPU part")
    found = {line for line in lines if line.startswith(wanted)}
    machine = (platform.machine(), platform.processor(), platform.system(), *platform.libc_ver())
    return "\n".join([*machine, *sorted(found)])
