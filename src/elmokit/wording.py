"""Positions in files, values and numbers of things, as messages show them.

Every room uses this one, so it loads nothing but the errors.
"""

import os
from dataclasses import dataclass

from elmokit.errors import FormatError

_MAX_SHOWN_CHARACTERS = 60


@dataclass(frozen=True, kw_only=True, slots=True)
class Location:
    """A file, a line of it, a part of a document."""

    path: object
    line: int | None = None
    """From 1; None for a whole document."""
    part: str = ""
    """Inside a JSON document, such as ``data[0].paragraphs[2]``."""

    def __str__(self) -> str:
        line = "" if self.line is None else f", line {self.line}"
        return f"{self.path}{line}{', ' if self.part else ''}{self.part}"

    def error(self, message: str) -> FormatError:
        """Return the error that names this location."""
        return FormatError(f"{self}: {message}")


def printable(path: object) -> str:
    """Return a path as text; bytes that are not UTF-8 are escaped."""
    return str(path).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def quoted(path: object) -> str:
    """Return a path as a word of a command to copy, for the shell of this system."""
    import shlex
    import subprocess

    text = str(path)
    return subprocess.list2cmdline([text]) if os.name == "nt" else shlex.quote(text)


def shown(value: object) -> str:
    """Return the repr of a value. A long one is shortened; its closing quote or bracket stays."""
    text = repr(value)
    is_long = len(text) > _MAX_SHOWN_CHARACTERS
    return f"{text[: _MAX_SHOWN_CHARACTERS - 4]}...{text[-1]}" if is_long else text


def counted(number: int, noun: str) -> str:
    """Return a number of things, such as "1 file" or "2,000 files"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
