"""Compiled libraries in the user's cache: only what this user wrote, and whole, is loaded.

A library is named ``KEY-DIGEST.so``. The key says what it was compiled from, the digest is that of
its bytes: a damaged library would end the process (SIGBUS, SIGSEGV).
"""

import hashlib
import logging
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from elmokit.files.atomic import atomic_file
from elmokit.files.cache_dir import cache_dir
from elmokit.files.ownership import make_directory, why_untrusted

log = logging.getLogger(__name__)

LIBRARY_PATTERN = (
    r"((inference|training|compiler)-[0-9a-f]{20}(-[0-9a-f]{20})?|\.?new-[0-9a-f]{32})\..+"
)
"""Names of the files in the cache, those of earlier versions among them."""
STALL_SECONDS = 24 * 3600
"""How long a compiler that did not finish is left alone."""
_NEW = "new-"
"""Start of the name of a library that is being written."""


def library_dir() -> Path:
    """Return the directory of compiled libraries, made if missing.

    Raises:
        InputError: without a home directory.
        OSError: if it cannot be made, or others could put code there.
    """
    directory = cache_dir("native")
    make_directory(directory)
    reason = why_untrusted(directory)
    if reason is not None:
        raise PermissionError(
            f"{reason}: code that others could have put there is not loaded. Make it yours alone "
            "(chown, chmod go-w), or set XDG_CACHE_HOME to a directory of your own."
        )
    return directory.resolve()


def find_library(directory: Path, key: str) -> Path | None:
    """Return a library that is whole and ours; remove others of the same key, with a warning."""
    for path in sorted(directory.glob(f"{key}-*.so")):
        with suppress(FileNotFoundError):  # another process removed it meanwhile
            reason = why_untrusted(path)
            if reason is None and path.name == _name(key, path):
                return path
            log.warning("%s: compiling it again", reason or f"{path} is damaged")
            path.unlink()
    return None


def add_library(directory: Path, key: str, write: Callable[[Path], None]) -> Path:
    """Keep the library that ``write`` writes to a path; other processes may do the same."""
    for left in directory.glob(f"*{_NEW}*"):  # by processes that were killed
        with suppress(OSError):
            if _age(left) > STALL_SECONDS:
                left.unlink()
    own = directory / f"{_NEW}{uuid.uuid4().hex}.so"
    with atomic_file(own, mode=0o700) as temp_path:
        write(temp_path)
    return own.replace(directory / _name(key, own))


def remember_stall(directory: Path, key: str) -> Path:
    """Write the marker of a compiler that did not finish, and return its path."""
    marker = _marker(directory, key)
    marker.touch(mode=0o600)
    return marker


def recent_stall(directory: Path, key: str) -> Path | None:
    """Return the marker of a compiler that did not finish in the last `STALL_SECONDS`."""
    marker = _marker(directory, key)
    is_recent = marker.exists() and 0 <= _age(marker) <= STALL_SECONDS
    return marker if is_recent else None


def _marker(directory: Path, key: str) -> Path:
    return directory / f"{key}.stalled"


def _name(key: str, path: Path) -> str:
    return f"{key}-{hashlib.sha256(path.read_bytes()).hexdigest()[:20]}.so"


def _age(path: Path) -> float:
    return time.time() - path.stat().st_mtime
