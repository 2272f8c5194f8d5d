"""Places that one process has for itself: temporary and cache directories, locks, trusted files.

Nothing can be planted in the way of a temporary directory: its name is unpredictable, it must be
new, and only its owner may enter. Each is locked while in use. What a killed process left is not,
and the next one that is made in the same place by the same machine removes it.
"""

import errno
import functools
import hashlib
import logging
import os
import platform
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from elmokit.errors import InputError

try:
    import fcntl
except ImportError:  # Windows: leftovers cannot be told from directories in use, and stay
    fcntl = None

log = logging.getLogger(__name__)

LOCK_NAME = ".elmokit-lock"
# the locks of some network file systems do not reach another machine
_MACHINE = hashlib.sha256(platform.node().encode()).hexdigest()[:8]
_NAME = re.compile(rf"\..+\.{_MACHINE}[0-9a-z_]+\.partial", re.DOTALL)
_MAX_NAME_BYTES = 200
"""Of a name that becomes part of a longer one; systems allow 255."""
_NO_LOCKS = {errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK}


@contextmanager
def temporary_directory(parent: Path, name: str) -> Iterator[Path]:
    """Yield a new directory ``.NAME.TOKEN.partial`` in ``parent``; at the end it is removed.

    Leftovers of killed processes in ``parent`` are removed first.
    """
    remove_leftovers(parent)
    prefix = os.path.basename(temporary_prefix(parent / name)) + _MACHINE
    path, descriptor = parent, None
    while path == parent:
        path = Path(tempfile.mkdtemp(".partial", prefix, parent))
        with suppress(OSError):  # a system without locks
            descriptor = _lock(path)
        # another process may have taken it for a leftover before it was locked
        path = path if path.exists() else parent
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
    """Remove temporary directories that killed processes of this machine left in ``parent``."""
    for entry in os.scandir(parent):
        if not (_NAME.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False)):
            continue
        # the kernel ends a lock with its process, however that ended, so what can be locked is
        # in use by nobody
        with suppress(OSError):  # another user's, in use, or a file system without locks
            descriptor = _lock(entry.path)
            shutil.rmtree(entry.path, ignore_errors=True)
            os.close(descriptor)


def remove_whole(directory: Path) -> None:
    """Remove a directory so that even a kill never leaves a part of it under its name."""
    with temporary_directory(directory.parent, directory.name) as doomed:
        directory.rename(doomed / directory.name)


def _lock(path: str | Path) -> int:
    if fcntl is None:
        raise OSError("Windows has no such locks")
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


@contextmanager
def exclusive_directory(directory: Path, *, busy: str) -> Iterator[None]:
    """Make a directory and lock it; at the end it is removed if it is empty.

    The lock ends with the process, however it ends. `FileExistsError` with the message ``busy`` if
    another process holds it.
    """
    from filelock import FileLock, Timeout

    path = directory / LOCK_NAME
    lock = FileLock(path, fallback_to_soft=False)
    try:
        while not lock.is_locked:
            directory.mkdir(parents=True, exist_ok=True)
            try:
                lock.acquire(timeout=0)
            except FileNotFoundError:
                continue  # removed by its last holder meanwhile
            except Timeout:
                raise FileExistsError(busy) from None
            except OSError as error:
                if error.errno not in _NO_LOCKS:
                    raise
                log.warning("%s cannot be locked (%s): start no other job in it", directory, error)
                break
        try:
            yield
        finally:
            with suppress(OSError):  # where open files cannot be removed
                path.unlink()
            lock.release()
    finally:  # without the lock: on NFS its file is there as long as it is open
        with suppress(OSError):  # not empty, or held by the next
            directory.rmdir()


def make_directory(path: Path) -> None:
    """Make a directory and its missing parents, to which others may not write."""
    if not path.is_dir():
        make_directory(path.parent)
        path.mkdir(mode=0o755, exist_ok=True)


def why_untrusted(path: Path) -> str | None:
    """Say why others could have written a file or the directory ``path``; None if they could not.

    Asked before code is loaded from it. It and the directories above must belong to this user or
    root, and nobody else may write there; above, they may if it is sticky, like ``/tmp``. Always
    None where the system has no users, as on Windows.
    """
    if not hasattr(os, "geteuid"):
        return None
    if stat.S_IFMT(path.lstat().st_mode) not in (stat.S_IFREG, stat.S_IFDIR):
        return f"{path} is a link or a special file"
    # who may write a directory above can put another tree in the place of the whole path
    for place in (path, *path.parent.resolve().joinpath(path.name).parents):
        status, is_above = place.stat(), place != path
        users = {0, os.geteuid(), *(_root_of_container() if is_above else ())}
        if status.st_uid not in users:
            return f"{place} belongs to user {status.st_uid}"
        is_sticky = is_above and status.st_mode & stat.S_ISVTX
        if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not is_sticky:
            return f"others may write to {place} (mode {stat.S_IMODE(status.st_mode):o})"
    return None


@functools.cache
def _root_of_container() -> list[int]:
    """Return who stands for root in a container that does not know root."""
    with suppress(OSError):
        if Path("/proc/self/uid_map").read_text().split() != ["0", "0", str(2**32 - 1)]:
            return [int(Path("/proc/sys/kernel/overflowuid").read_text())]
    return []


def cache_dir(name: str) -> Path:
    """Return ``$XDG_CACHE_HOME/elmokit/NAME`` (or under ``~/.cache``), which may not exist yet."""
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return Path(base or Path.home() / ".cache") / "elmokit" / name
    except RuntimeError as error:
        raise InputError(
            f"There is no cache directory: {error} Set XDG_CACHE_HOME to a writable directory."
        ) from error


@dataclass(frozen=True)
class CacheEntry:
    """A file or directory of a cache."""

    path: Path
    num_bytes: int
    used: float
    """Time of the last use, in seconds since the epoch."""


def cache_entries(directory: Path, pattern: str) -> list[CacheEntry]:
    """Return what a cache holds under names that match a regular expression, oldest use first."""
    if not directory.is_dir():
        return []
    entries = []
    for path in directory.iterdir():
        with suppress(FileNotFoundError):  # another process may remove it meanwhile
            if re.fullmatch(pattern, path.name) and not path.is_symlink():
                files = [file for file in (path, *path.rglob("*")) if file.is_file()]
                num_bytes = sum(file.stat().st_size for file in files)
                entries.append(CacheEntry(path, num_bytes, path.stat().st_mtime))
    return sorted(entries, key=lambda entry: entry.used)


def remove_entry(entry: CacheEntry) -> None:
    """Remove an entry, never leaving a part of it under its name."""
    with suppress(OSError):  # another process may have removed it
        if entry.path.is_dir():
            remove_whole(entry.path)
        else:
            entry.path.unlink()
