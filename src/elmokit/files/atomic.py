"""Files and directories that appear whole or not at all: temporary file, fsync, rename.

The temporary file is hidden, beside the target, and removed on errors; a full disk leaves the old
file intact. A kill may leave it behind; the next write replaces it. One writer per target at a
time.
"""

import errno
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from elmokit.errors import InputError

StrPath = str | os.PathLike[str]
_NO_ROOM = {
    "No space left on device": errno.ENOSPC,
    "File too large": errno.EFBIG,
    "Disk quota exceeded": errno.EDQUOT,
}
"""System messages that mean "out of space", and their error numbers."""


def check_target(path: StrPath, *, inputs: Iterable[StrPath] = (), overwrite: bool) -> None:
    """Check before any work that an output file may be written.

    Raises:
        InputError: if ``path`` is one of the inputs, which are never replaced.
        IsADirectoryError: if it is a directory.
        FileExistsError: if it exists and ``overwrite`` is false.
    """
    target = Path(path)
    if not target.exists():
        return
    if any(os.path.exists(source) and target.samefile(source) for source in inputs):
        raise InputError(
            f"{target} is read by this command, so it cannot be its output too. Give another name "
            "for the output."
        )
    _refuse_directory(target)
    if not overwrite:
        raise FileExistsError(
            f"{target} exists already. Replace it with --overwrite, or give another name."
        )


def no_room(error: BaseException) -> int | None:
    """Return the errno of an out-of-space error; h5py and safetensors only give its message."""
    number = getattr(error, "errno", None)
    if number in _NO_ROOM.values():
        return number
    text = str(error)
    return next((number for words, number in _NO_ROOM.items() if words in text), None)


def reserve(path: Path, num_bytes: int) -> None:
    """Reserve space for a file, where the system can; raise `OSError` if there is not enough.

    For HDF5, whose library may crash when the disk is full.
    """
    if num_bytes > 0 and hasattr(os, "posix_fallocate"):
        with path.open("ab") as file:
            os.posix_fallocate(file.fileno(), 0, num_bytes)


@contextmanager
def named(target: StrPath) -> Iterator[None]:
    """Name the target in system errors that have no name or that of the temporary file.

    Out-of-space errors of other libraries become `OSError`.
    """
    try:
        yield
    except Exception as error:
        known = getattr(error, "filename", None)
        temp_path = str(temp_path_of(Path(target)))
        is_ours = known is None or str(known).startswith(temp_path)
        number = no_room(error)
        if number is not None and is_ours:
            raise OSError(number, os.strerror(number), str(target)) from error
        if isinstance(error, OSError) and error.errno is not None and known is not None and is_ours:
            error.filename = str(target)
        raise


@contextmanager
def atomic_file(path: StrPath) -> Iterator[Path]:
    """Yield a temporary path that replaces ``path`` on success and is removed on errors.

    On return the file survives a power cut. Missing directories are made.

    Raises:
        IsADirectoryError: at once, if ``path`` is a directory.
    """
    target = Path(path)
    _refuse_directory(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    temp_path = temp_path_of(target)
    try:
        with named(target):
            temp_path.touch()
            yield temp_path
            _force_to_disk(temp_path)
            temp_path.replace(target)
            _force_to_disk(target.parent)
    finally:
        with suppress(OSError):  # report the first error
            temp_path.unlink(missing_ok=True)


@contextmanager
def atomic_directory(path: StrPath) -> Iterator[Path]:
    """Yield an empty directory that replaces ``path`` on success and is removed on errors.

    It must stay flat (no subdirectories). On return it survives a power cut. A kill between the two
    renames that replace an older directory leaves that one intact as `previous_of`.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    temp_path, previous = temp_path_of(target), previous_of(target)
    shutil.rmtree(temp_path, ignore_errors=True)
    try:
        with named(target):
            temp_path.mkdir()
            yield temp_path
            for written in (*temp_path.iterdir(), temp_path):
                _force_to_disk(written)
            if target.exists():
                shutil.rmtree(previous, ignore_errors=True)
                target.rename(previous)
            try:
                temp_path.rename(target)
            except OSError:
                if previous.exists():
                    previous.rename(target)
                raise
            _force_to_disk(target.parent)
    finally:
        shutil.rmtree(temp_path, ignore_errors=True)
    shutil.rmtree(previous, ignore_errors=True)


def temp_path_of(target: Path) -> Path:
    """Return the temporary path of ``target``."""
    return target.with_name(f".{target.name}.partial")


def previous_of(target: Path) -> Path:
    """Return the name of an older directory while it is being replaced."""
    return target.with_name(f".{target.name}.previous")


def _refuse_directory(target: Path) -> None:
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))


def _force_to_disk(path: Path) -> None:
    if path.is_dir() and os.name == "nt":  # Windows cannot open directories
        return
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
