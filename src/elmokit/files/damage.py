"""What other libraries raise about a damaged file, as one error."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from elmokit.errors import ElmokitError, FormatError

_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
_SYSTEM_ERRORS = {errno.EIO, errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENFILE, errno.ESTALE}
"""These say nothing about the contents of a file."""


@contextmanager
def damage(path: object, advice: str, *, what: str = "damaged") -> Iterator[None]:
    """Turn any error of a library that reads ``path`` into `FormatError`; ``advice`` ends it.

    Keep the block to calls of the library: a bug inside it would be reported as a damaged file.
    Errors of elmokit, system errors (such as a disk that cannot be read), and lack of memory are
    passed on.
    """
    try:
        yield
    except (ElmokitError, MemoryError):
        raise
    except Exception as error:  # on damage, such libraries raise errors of nearly every class
        # h5py and others raise OSError for damage as well, but those have no errno or file name
        if isinstance(error, OSError):
            if error.filename is None and error.errno in _SYSTEM_ERRORS:
                error.filename = str(path)
            if error.filename is not None:
                raise
        refuse_lfs_pointer(path)
        reason = str(error).strip().removesuffix(".") or type(error).__name__
        raise FormatError(f"{path}: {what}: {reason}. {advice}") from error


def refuse_lfs_pointer(path: Any, head: bytes | None = None) -> None:
    """Raise `FormatError` for what Git LFS leaves in place of a file that it has not fetched.

    ``head`` is how the file begins, if that was read; ``path`` is then only for the message.
    """
    if head is None and isinstance(path, Path) and path.is_file():
        with path.open("rb") as file:
            head = file.read(len(_LFS_POINTER))
    if (head or b"").startswith(_LFS_POINTER):
        raise FormatError(
            f"{path}: a Git LFS pointer, which stands for the file but is not the file itself. "
            "Fetch the file: run `git lfs pull` in its repository."
        )
