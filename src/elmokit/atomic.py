"""Files and directories that appear whole or not at all: written aside, forced to disk, renamed.

What is written aside stands beside its target under a hidden name and vanishes on an error, so a
full disk leaves the old file as it was. A kill may leave it behind; the next write to the same
target replaces it. One writer to a target at a time.
"""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

StrPath = str | os.PathLike[str]


@contextmanager
def whole_file(path: StrPath) -> Iterator[Path]:
    """Give a name to write to, which becomes ``path`` if all goes well and vanishes otherwise.

    When this returns the file survives a power cut. Missing directories are made.

    Args:
        path: The file; an older one is replaced.

    Raises:
        IsADirectoryError: at once, if ``path`` is a directory.
    """
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = aside_of(target)
    with _named(target):
        aside.touch()
    try:
        yield aside
        _force_to_disk(aside)
        aside.replace(target)
        _force_to_disk(target.parent)
    finally:
        aside.unlink(missing_ok=True)


@contextmanager
def whole_directory(path: StrPath) -> Iterator[Path]:
    """Give an empty directory to fill, which becomes ``path`` if all goes well; else it vanishes.

    When this returns the directory survives a power cut. A kill between the two renames that
    replace an older directory leaves that one whole under the name of `previous_of`.

    Args:
        path: The directory, without directories in it; an older one is replaced.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    aside, previous = aside_of(target), previous_of(target)
    shutil.rmtree(aside, ignore_errors=True)
    with _named(target):
        aside.mkdir()
    try:
        yield aside
        for written in (*aside.iterdir(), aside):
            _force_to_disk(written)
        if target.exists():
            shutil.rmtree(previous, ignore_errors=True)
            target.rename(previous)
        try:
            aside.rename(target)
        except OSError:
            if previous.exists():
                previous.rename(target)
            raise
        _force_to_disk(target.parent)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    shutil.rmtree(previous, ignore_errors=True)


def aside_of(target: Path) -> Path:
    """Return the name under which ``target`` is written."""
    return target.with_name(f".{target.name}.partial")


def previous_of(target: Path) -> Path:
    """Return the name that an older directory has for the moment in which it is replaced."""
    return target.with_name(f".{target.name}.previous")


@contextmanager
def _named(target: Path) -> Iterator[None]:
    """Name the target in a system error about the name that stands for it."""
    try:
        yield
    except OSError as error:
        error.filename = str(target)
        raise


def _force_to_disk(path: Path) -> None:
    if path.is_dir():
        if os.name == "nt":  # which cannot open directories
            return
        flags = os.O_RDONLY
    else:
        flags = os.O_RDWR
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
