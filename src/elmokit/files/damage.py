"""What other libraries raise about a damaged file, as one error."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from elmokit.errors import ElmokitError, FormatError


@contextmanager
def damage(path: Path, advice: str, *, what: str = "damaged") -> Iterator[None]:
    """Turn any error of a library that reads ``path`` into `FormatError`.

    Keep the block to calls of the library: a bug inside it would be reported as a damaged file.
    Errors of elmokit, system errors that name a file, and lack of memory are passed on.
    """
    try:
        yield
    except (ElmokitError, MemoryError):
        raise
    except Exception as error:  # on damage, such libraries raise errors of nearly every class
        if isinstance(error, OSError) and error.filename is not None:
            raise
        raise FormatError(f"{path}: {what}: {error}. {advice}") from error
