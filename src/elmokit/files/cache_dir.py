"""Where elmokit caches files, how much there is, and removing it."""

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from elmokit.errors import InputError
from elmokit.files.temporary import remove_whole


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
