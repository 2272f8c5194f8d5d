"""Files and directories that appear whole or not at all: written aside, forced to disk, renamed.

What is written aside stands beside its target under a hidden name and vanishes on an error, so a
full disk leaves the old file as it was. A kill may leave it behind; the next write to the same
target replaces it. One writer to a target at a time.
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
"""How the system says that it will not write more, in words and as a number."""


def check_target(path: StrPath, *, inputs: Iterable[StrPath] = (), overwrite: bool) -> None:
    """Refuse to write where a file stands that is wanted, before any work is done.

    Args:
        path: A file that is to be written.
        inputs: What is read; none of it is ever replaced.
        overwrite: Whether any other file may be.

    Raises:
        InputError: if ``path`` is one of the inputs.
        IsADirectoryError: if it is a directory.
        FileExistsError: if it exists and is not to be replaced.
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
    """Return the system's number for "not a byte more can be written here", if this is the error.

    h5py and safetensors give the system's words without its number.
    """
    number = getattr(error, "errno", None)
    if number in _NO_ROOM.values():
        return number
    text = str(error)
    return next((number for words, number in _NO_ROOM.items() if words in text), None)


def reserve(path: Path, num_bytes: int) -> None:
    """Make sure that there is room for a file, where the system can tell.

    For HDF5, whose library may crash where it cannot write what it has promised.

    Args:
        path: The file; made if it is not there, and as long as this afterwards.
        num_bytes: What it will have at least.

    Raises:
        OSError: if there is no room.
    """
    if num_bytes > 0 and hasattr(os, "posix_fallocate"):
        with path.open("ab") as file:
            os.posix_fallocate(file.fileno(), 0, num_bytes)


@contextmanager
def named(target: StrPath) -> Iterator[None]:
    """Name the target in a system error that has no name, or the name that stands for it.

    What other libraries raise where there is no room becomes a system error.
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
    """Give a name to write to, which becomes ``path`` if all goes well and vanishes otherwise.

    When this returns the file survives a power cut. Missing directories are made.

    Args:
        path: The file; an older one is replaced.

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
        with suppress(OSError):  # the first error is the one to tell
            temp_path.unlink(missing_ok=True)


@contextmanager
def atomic_directory(path: StrPath) -> Iterator[Path]:
    """Give an empty directory to fill, which becomes ``path`` if all goes well; else it vanishes.

    When this returns the directory survives a power cut. A kill between the two renames that
    replace an older directory leaves that one whole under the name of `previous_of`.

    Args:
        path: The directory, without directories in it; an older one is replaced.
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
    """Return the name under which ``target`` is written."""
    return target.with_name(f".{target.name}.partial")


def previous_of(target: Path) -> Path:
    """Return the name that an older directory has for the moment in which it is replaced."""
    return target.with_name(f".{target.name}.previous")


def _refuse_directory(target: Path) -> None:
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))


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
