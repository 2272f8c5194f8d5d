"""Text files as consecutively numbered sentences, one per line.

`elmokit.corpus.readers` skips and counts bad lines. Here the number of a line is the key of its
vectors, so a line that cannot be read stops the job.
"""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from elmokit.errors import FormatError
from elmokit.files.lines import MAX_LINE_BYTES, raw_lines, text_of_line
from elmokit.files.location import Location
from elmokit.files.sources import (
    COMPRESSIONS,
    Paths,
    file_kind,
    file_size,
    find_files,
    is_read_once,
)

WHY_NOT_SKIPPED = "The line cannot be skipped, because its number identifies its result."


class NumberedLines:
    """The lines of some text files, numbered consecutively from 0.

    Iterate once. Blank lines count; only the line end (LF or CRLF) is removed.

    Args:
        paths: Files, directories or patterns; .gz, .xz, .bz2 and .zst are decompressed.
        exclude: As in `find_files`.

    Raises:
        FileNotFoundError: if one does not exist.
        FormatError: if one is not plain text; while reading: with file and line number, for a line
            that is not UTF-8, holds NUL or is longer than `MAX_LINE_BYTES`.
    """

    def __init__(self, paths: Paths, *, exclude: Sequence[Path] = ()) -> None:
        self.files = find_files(paths, exclude=exclude)
        self.num_bytes = 0
        for path in self.files:
            if file_kind(path) != "text":
                raise FormatError(
                    f"{path}: expected plain text (or .gz, .xz, .bz2, .zst of it) with one "
                    "sentence per line. Write the sentences to such a file first."
                )

    def share(self, index: int, number: int) -> "LineShare":
        """Return every ``number``-th line, from line ``index`` on."""
        return LineShare(self, index, number)

    @property
    def total_bytes(self) -> int | None:
        """Final value of ``num_bytes``; None if unknown (compressed files, pipes, some servers)."""
        total = 0
        for path in self.files:
            if is_read_once(path) or path.suffix.lower() in COMPRESSIONS:
                return None
            if (size := file_size(path)) is None:
                return None
            total += size
        return total

    def located(self) -> Iterator[tuple[Location, str]]:
        """Yield every line with its file and its number there; use this or iterate, not both."""
        for path in self.files:
            for number, raw in enumerate(raw_lines(path, MAX_LINE_BYTES), 1):
                line = text_of_line(raw, path, number, reason=WHY_NOT_SKIPPED)
                self.num_bytes += len(raw or b"") + 1
                yield Location(path=path, line=number), line

    def __iter__(self) -> Iterator[tuple[int, str]]:
        return enumerate(line for _, line in self.located())


class LineShare:
    """The lines of one job, and a hash of them. Iterate once."""

    def __init__(self, lines: NumberedLines, index: int, number: int) -> None:
        self._lines = (pair for pair in lines if pair[0] % number == index)
        self._digest = hashlib.sha256()
        self.count = 0
        """Lines read so far."""

    def __iter__(self) -> "LineShare":
        return self

    def __next__(self) -> tuple[int, str]:
        index, line = next(self._lines)
        self.count += 1
        self._digest.update(f"{index} {line}\n".encode())
        return index, line

    def sha256(self) -> str:
        """Return the hex hash of the lines read so far and their numbers."""
        return self._digest.hexdigest()
