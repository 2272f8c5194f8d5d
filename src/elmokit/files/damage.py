"""What other libraries raise about a damaged file, as one error."""

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from elmokit.errors import ElmokitError, FormatError

_SYSTEM_ERRORS = {errno.EIO, errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENFILE, errno.ESTALE}
"""These say nothing about the contents of a file."""


@contextmanager
def damage(
    path: object, advice: str | Callable[[], str], *, what: str = "damaged"
) -> Iterator[None]:
    """Turn any error of a library that reads ``path`` into `FormatError`.

    Keep the block to calls of the library: a bug inside it would be reported as a damaged file.
    Errors of elmokit, system errors (such as a disk that cannot be read), and lack of memory are
    passed on. ``advice`` ends the message; a function is called only then.
    """
    try:
        yield
    except (ElmokitError, MemoryError):
        raise
    except Exception as error:  # on damage, such libraries raise errors of nearly every class
        if isinstance(error, OSError):
            if error.filename is None and error.errno in _SYSTEM_ERRORS:
                error.filename = str(path)
            if error.filename is not None:
                raise
        text = advice if isinstance(advice, str) else advice()
        raise FormatError(f"{path}: {what}: {reason_of(error)}. {text}") from error


def reason_of(error: Exception) -> str:
    """Return the message of another library's error as part of a sentence, without a full stop."""
    return str(error).strip().removesuffix(".") or type(error).__name__
