"""Files and directories that appear whole or not at all: temporary file, fsync, rename.

All files of elmokit are written through here. The temporary file is in a private directory beside
the target (`elmokit.files.temporary`), removed on errors; a full disk leaves the old file intact.
If several processes write one target, the last wins. A link is written through and stays, because
people link results to a larger disk.
"""

import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from elmokit.errors import InputError
from elmokit.files.remote import as_address
from elmokit.files.temporary import temporary_directory, temporary_prefix

StrPath = str | os.PathLike[str]
# h5py and safetensors give only the message of the system
_NO_ROOM = {os.strerror(number): number for number in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)}


def check_target(path: StrPath, *, inputs: Iterable[StrPath] = (), overwrite: bool) -> None:
    """Check before any work that an output file may be written; inputs are never replaced."""
    target = Path(path)
    if not replaced_by(target).exists():
        return
    if any(os.path.exists(source) and target.samefile(source) for source in inputs):
        raise InputError(
            f"{target} is read by this command, so it cannot be its output too. Give another name "
            "for the output."
        )
    if not overwrite:
        raise FileExistsError(
            f"{target} exists already. Replace it with --overwrite, or give another name."
        )


def no_room(error: BaseException) -> int | None:
    """Return the errno of an out-of-space error, also of one that only says so."""
    number = getattr(error, "errno", None)
    if number in _NO_ROOM.values():
        return number
    text = str(error)
    return next((number for words, number in _NO_ROOM.items() if words in text), None)


def reserve(path: Path, num_bytes: int) -> None:
    """Reserve space for a file, where the system can; raise `OSError` if there is not enough.

    For memory-mapped files, and before HDF5 files, whose library may crash when the disk is full.
    (h5py empties the file that it writes, so for it this is a check at the start.)
    """
    if num_bytes <= 0 or not hasattr(os, "posix_fallocate"):
        return
    # not for appending: where the file system cannot reserve, glibc does, and refuses such files
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        os.posix_fallocate(descriptor, 0, num_bytes)
    except OSError as error:
        if error.errno != errno.EOPNOTSUPP:  # musl does without
            raise
    finally:
        os.close(descriptor)


@contextmanager
def named(target: StrPath) -> Iterator[None]:
    """Name the target in system errors that have no name or that of the temporary file.

    Out-of-space errors of other libraries become `OSError`.
    """
    try:
        yield
    except Exception as error:
        known = getattr(error, "filename", None)
        if known is not None and not str(known).startswith(temporary_prefix(Path(target))):
            raise
        number = no_room(error)
        if number is not None:
            raise OSError(number, os.strerror(number), str(target)) from error
        if known is not None and isinstance(error, OSError):
            error.filename, error.filename2 = str(target), None
        raise


def replaced_by(path: StrPath, *, directory: bool = False) -> Path:
    """Return the path that writing to ``path`` replaces: itself, or what a link leads to."""
    target = Path(path)
    if (address := as_address(path)) is not None:
        raise InputError(
            f"{address} is an address, but outputs are written on this machine. Copy it there "
            "when it is complete."
        )
    if target.is_symlink():
        target = Path(os.path.realpath(target))
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return target
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise InputError(
            f"{path} is a device, a FIFO or a socket. Output is written whole and then takes the "
            "place of the old file: give the name of a file."
        )
    if stat.S_ISDIR(mode) != directory:
        number = errno.ENOTDIR if directory else errno.EISDIR
        raise OSError(number, os.strerror(number), str(path))
    return target


@contextmanager
def atomic_file(path: StrPath, *, mode: int | None = None, parents: bool = True) -> Iterator[Path]:
    """Yield the path of a temporary file that replaces ``path`` on success.

    On return the file survives a power cut. Missing directories are made, unless ``parents`` is
    false. Without ``mode`` the umask decides.
    """
    target = replaced_by(path)
    if parents:
        target.parent.mkdir(parents=True, exist_ok=True)
    with _temporary_place(target) as temp_path:
        temp_path.touch(exist_ok=False)
        usual = temp_path.stat().st_mode & 0o777
        yield temp_path
        temp_path.chmod(usual if mode is None else mode)
        _force_to_disk(temp_path)
        temp_path.replace(target)
        _force_to_disk(target.parent)


@contextmanager
def atomic_directory(path: StrPath, *, keep: Callable[[], bool] = lambda: False) -> Iterator[Path]:
    """Yield an empty directory that replaces ``path`` on success and is removed on errors.

    On return it survives a power cut. A kill between the two renames that replace an older
    directory leaves that one intact as `previous_of`. ``keep`` is asked at the end whether the
    directory that is there, perhaps from another process, stays. A mount point or the working
    directory cannot be replaced.
    """
    target = replaced_by(path, directory=True)
    previous = previous_of(target)
    if os.path.ismount(target) or _holds_working_directory(target):
        raise InputError(
            f"{target} is a mount point or the working directory, so it cannot be replaced. Give "
            "another directory, or run this from another one."
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    with _temporary_place(target) as temp_path:
        temp_path.mkdir()
        mode = temp_path.stat().st_mode & 0o666
        yield temp_path
        for written in temp_path.rglob("*"):
            if not written.is_dir():
                written.chmod(mode)
            _force_to_disk(written)
        _force_to_disk(temp_path)
        if keep():
            return
        # a directory cannot be renamed onto one that is not empty, so for a moment there is none of
        # this name; readers then take `previous_of`
        if target.exists():
            shutil.rmtree(previous, ignore_errors=True)
            target.rename(previous)
        try:
            temp_path.rename(target)
        except OSError:
            if keep():
                return
            if previous.exists():
                previous.rename(target)
            raise
        _force_to_disk(target.parent)
    shutil.rmtree(previous, ignore_errors=True)


def previous_of(target: Path) -> Path:
    """Return the name of an older directory while it is being replaced."""
    return target.with_name(f".{target.name}.previous")


@contextmanager
def _temporary_place(target: Path) -> Iterator[Path]:
    """Yield a path of the target's name in a private directory beside it."""
    with named(target), temporary_directory(target.parent, target.name) as folder:
        yield folder / target.name


def _holds_working_directory(target: Path) -> bool:
    try:
        return target.is_dir() and Path.cwd().is_relative_to(target.resolve())
    except FileNotFoundError:  # there is no working directory any more
        return False


def _force_to_disk(path: Path) -> None:
    if path.is_dir() and os.name == "nt":  # Windows cannot open directories
        return
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL or not path.is_dir():  # not all file systems can
            raise
    finally:
        os.close(descriptor)
