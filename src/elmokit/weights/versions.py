"""What is said of a directory that cannot be read because a newer elmokit wrote it.

A newer version adds settings, which are unknown here. A directory that has none of them is read.
"""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager

from elmokit.errors import ConfigError, FormatError, InputError
from elmokit.version import __version__


def newer_version_hint(written_by: object) -> str:
    """Return what to do if ``written_by``, the version in a file, is a newer one; else ""."""
    if _release(str(written_by)) <= _release(__version__):
        return ""
    return (
        f"The directory was written by elmokit {written_by}, and this is {__version__}: install "
        "that version or a newer one."
    )


@contextmanager
def adding_version_hint(written_by: object) -> Iterator[None]:
    """Add `newer_version_hint` to errors about the contents of a directory that lack it."""
    try:
        yield
    except (ConfigError, FormatError, InputError) as error:
        if (hint := newer_version_hint(written_by)) and hint not in str(error):
            raise type(error)(f"{error}\n{hint}") from error
        raise


def _release(version: str) -> tuple[int, ...]:
    """Return the leading numbers of a version: (0, 2) for ``0.2.0.dev0`` and ``0.2``."""
    parts = version.split(".")
    numbers = itertools.takewhile(str.isdecimal, parts[:2])
    return tuple(int(number[:9]) for number in numbers)
