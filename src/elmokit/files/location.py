"""Where in a file something is, and how messages show it."""

from dataclasses import dataclass
from pathlib import Path

from elmokit.errors import FormatError

_MAX_SHOWN_CHARACTERS = 60


@dataclass(frozen=True, kw_only=True, slots=True)
class Location:
    """A file, a line of it, a part of a document."""

    path: Path
    line: int | None = None
    """From 1; None where a whole document is on one line."""
    part: str = ""
    """Inside a JSON document, such as ``data[0].paragraphs[2]``."""

    def __str__(self) -> str:
        line = "" if self.line is None else f", line {self.line}"
        return f"{self.path}{line}{', ' if self.part else ''}{self.part}"

    def error(self, message: str) -> FormatError:
        """Return the error that names this location."""
        return FormatError(f"{self}: {message}")


def shown(value: object) -> str:
    """Return a value as a message shows it: its repr, cut if it is long."""
    text = repr(value)
    if len(text) <= _MAX_SHOWN_CHARACTERS:
        return text
    return f"{text[: _MAX_SHOWN_CHARACTERS - 3]}..."
