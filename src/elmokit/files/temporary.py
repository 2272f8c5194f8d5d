"""Temporary directories of one process, beside what they become or in the system's folder.

Nothing can be planted in their way: the name is unpredictable, the directory must be new, and only
its owner may enter. Each is locked while in use; what a killed process left is not, and is removed
when the next temporary directory is made in the same place by the same machine (the locks of some
network file systems do not reach another one).
"""

import hashlib
import os
import platform
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: leftovers cannot be told from directories in use, and stay
    fcntl = None

_MODE = 0o700
_MACHINE = hashlib.sha256(platform.node().encode()).hexdigest()[:8]
_NAME = re.compile(rf"\..+\.{_MACHINE}[0-9a-f]{{16}}\.partial", re.DOTALL)
_MAX_NAME_BYTES = 200
"""Of a name that becomes part of a longer one; systems allow 255."""


@contextmanager
def temporary_directory(parent: Path, name: str) -> Iterator[Path]:
    """Yield a new directory ``.NAME.TOKEN.partial`` in ``parent``; at the end it is removed.

    Leftovers of killed processes in ``parent`` are removed first: directories of such a name, of
    the same user and machine, that no process has locked.
    """
    remove_leftovers(parent)
    path, descriptor = _create(temporary_prefix(parent / name))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        if descriptor is not None:
            os.close(descriptor)


def scratch_directory(name: str) -> AbstractContextManager[Path]:
    """Return a `temporary_directory` in the system's folder for temporary files."""
    return temporary_directory(Path(tempfile.gettempdir()), name)


def temporary_prefix(target: Path) -> str:
    """Return how the paths of temporary directories for ``target`` begin."""
    name = target.name
    if len(os.fsencode(name)) > _MAX_NAME_BYTES:
        name = hashlib.sha256(os.fsencode(name)).hexdigest()
    return str(target.with_name(f".{name}."))


def remove_leftovers(parent: Path) -> None:
    """Remove temporary directories that a killed process of the same user left in ``parent``."""
    if fcntl is None:
        return
    for entry in os.scandir(parent):
        if not (_NAME.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False)):
            continue
        # the kernel ends a lock with its process, however that ended, so what can be locked is
        # in use by nobody
        with suppress(OSError):  # removed meanwhile, in use, or a file system without locks
            status = entry.stat(follow_symlinks=False)
            if status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o777 != _MODE:
                continue
            descriptor = _lock(entry.path)
            shutil.rmtree(entry.path, ignore_errors=True)
            os.close(descriptor)


def remove_whole(directory: Path) -> None:
    """Remove a directory so that even a kill never leaves a part of it under its name."""
    with temporary_directory(directory.parent, directory.name) as doomed:
        directory.rename(doomed / directory.name)


def _create(prefix: str) -> tuple[Path, int | None]:
    """Create and lock a directory; return the descriptor of the lock, None without locks."""
    while True:
        path = Path(f"{prefix}{_MACHINE}{secrets.token_hex(8)}.partial")
        path.mkdir(_MODE)
        try:
            descriptor = None if fcntl is None else _lock(str(path))
        except (FileNotFoundError, BlockingIOError):
            continue  # another process took it for a leftover before it was locked
        except OSError:
            return path, None
        if path.exists():
            return path, descriptor
        if descriptor is not None:
            os.close(descriptor)


def _lock(path: str) -> int:
    """Lock a directory; raise `BlockingIOError` if it is in use, `OSError` if it has no locks."""
    assert fcntl is not None
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
