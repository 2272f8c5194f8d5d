"""Load the C kernels: those that came with the package, or compiled for this processor, once.

Compiled libraries lie in the user's cache as ``KEY-DIGEST.so``. The key is a hash of sources,
compiler, flags and processor. The digest is that of the library's bytes: a damaged library would
end the process (SIGBUS, SIGSEGV), and one that others could have written is never loaded.
"""

import ctypes
import functools
import hashlib
import logging
import os
import platform
import shlex
import shutil
from contextlib import suppress
from pathlib import Path

from elmokit.files.atomic import atomic_file
from elmokit.files.cache_dir import cache_dir
from elmokit.files.temporary import make_directory, scratch_directory, why_untrusted
from elmokit.kernels.interface import SOURCE_DIR, read_interface
from elmokit.kernels.prebuilt import PREBUILT_DIR, find_prebuilt

log = logging.getLogger(__name__)

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
COMPILER_SECONDS = 60
"""A compiler that takes longer (usual: 4) is stopped."""
LIBRARY_PATTERN = (
    r"((inference|training|compiler)-[0-9a-f]{20}(-[0-9a-f]{20})?|\.?new-[0-9a-f]{32})\..+"
)
"""Names of the files in the cache, those of earlier versions among them."""


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


def origin(name: str) -> str:
    """Say what computes: prebuilt kernels, kernels compiled on this machine, or NumPy."""
    library = load_library(name)
    if library is None:
        return "NumPy, without compiled kernels"
    path = Path(library._name)
    if path.parent == PREBUILT_DIR:
        return f"prebuilt kernels ({path.stem.removeprefix(f'{name}-')})"
    return "kernels compiled on this machine"


def find_compiled(name: str) -> Path:
    """Return a library for this processor from the user's cache, compiled if it is not there."""
    compiler = _compiler()
    if compiler is None:
        raise OSError("no C compiler found (cc, gcc, clang)")
    directory = cache_dir("native")
    make_directory(directory)
    if (reason := why_untrusted(directory)) is not None:
        raise PermissionError(
            f"{reason}: code that others could have put there is not loaded. Make it yours alone "
            "(chown, chmod go-w), or set XDG_CACHE_HOME to a directory of your own."
        )
    made_by = compiler, os.stat(compiler[0]).st_mtime, FLAGS, NATIVE_FLAGS, _processor()
    depends_on = (read_interface(name).source, *made_by)
    key = f"{name}-{_digest(repr(depends_on).encode())}"
    for path in sorted(directory.resolve().glob(f"{key}-*.so")):
        with suppress(FileNotFoundError):  # another process removed it meanwhile
            reason = why_untrusted(path)
            if reason is None and path.stem == f"{key}-{_digest(path.read_bytes())}":
                return path
            log.warning("%s: compiling it again", reason or f"{path} is damaged")
            path.unlink()
    log.info("compiling the kernels for this processor with %s", shlex.join(compiler))
    # Its name is known only when it is compiled, and other processes may do the same.
    with scratch_directory("elmokit-kernels") as folder:
        _compile(name, compiler, folder / "library.so")
        content = (folder / "library.so").read_bytes()
    # the name tells the bytes: what is damaged later is found out before it is loaded
    path = directory.resolve() / f"{key}-{_digest(content)}.so"
    with atomic_file(path, mode=0o700) as temp_path:
        temp_path.write_bytes(content)
    return path


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:20]


def _compiler() -> tuple[str, ...] | None:
    """Return the C compiler: ``CC``, which may have arguments, or a usual one."""
    wanted = os.environ.get("CC", "")
    for command in (wanted, "cc", "gcc", "clang"):
        words = shlex.split(command)
        program = shutil.which(words[0]) if words else None
        if program is not None:
            return (program, *words[1:])
        if words and command is wanted:
            log.warning("CC=%s is not found: trying cc, gcc, clang", wanted)
    return None


def _compile(name: str, compiler: tuple[str, ...], target: Path) -> None:
    """Compile a library with the first set of flags that the compiler accepts."""
    import subprocess

    errors: list[str] = []
    source = ("-I", str(SOURCE_DIR), str(SOURCE_DIR / f"{name}.c"))
    for native in NATIVE_FLAGS:
        command = [*compiler, *FLAGS, *native, *source, "-o", str(target), "-lm"]
        try:
            process = subprocess.run(command, capture_output=True, timeout=COMPILER_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise TimeoutError(f"{error}. Set CC to another compiler.") from error
        if process.returncode == 0:
            return
        errors.append(process.stderr.decode(errors="replace"))
    raise OSError(f"{shlex.join(compiler)} refused the kernels: {errors[0][:500]}")


@functools.cache
def _processor() -> str:
    """Return what identifies the instructions of this processor, and the C library."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(errors="replace").splitlines() if info.exists() else []
    names = ("flags", "Features", "model name", "CPU part")
    machine = (platform.machine(), platform.system(), *platform.libc_ver())
    return "\n".join([*machine, *sorted({line for line in lines if line.startswith(names)})])
