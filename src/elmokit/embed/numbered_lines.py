"""Text files as consecutively numbered sentences, one per line.

`elmokit.corpus.readers` skips and counts bad lines. Here the number of a line is the key of its
vectors, so a line that cannot be read stops the job.
"""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from elmokit.embed.keyed_lines import FASTA_SUFFIXES, Keys, keyed_texts, plain_suffix
from elmokit.errors import FormatError
from elmokit.files.lines import MAX_LINE_BYTES, raw_lines, text_of_line
from elmokit.files.remote import AnyFile
from elmokit.files.sources import (
    COMPRESSIONS,
    Paths,
    file_kind,
    file_size,
    find_files,
    is_read_once,
)
from elmokit.wording import Location

WHY_NOT_SKIPPED = "The line cannot be skipped, because its number identifies its result."


class NumberedLines:
    """The lines of some text files, numbered consecutively from 0.

    Iterate once. Blank lines count; only the line end (LF or CRLF) is removed.

    Args:
        paths: Files, directories or patterns; .gz, .xz, .bz2 and .zst are decompressed.
        exclude: As in `find_files`.
        id_field: Field of a table or of JSON lines with the key of each sentence; FASTA files have
            keys of their own.
        text_field: The field of the sentences; default: ``text``.
        keys_are_paths: Whether the output takes keys as paths, in which ``/`` is no letter.

    Raises:
        FileNotFoundError: if one does not exist.
        FormatError: if one is not plain text; while reading: with file and line number, for a line
            that is not UTF-8, holds NUL or is longer than `MAX_LINE_BYTES`.
    """

    def __init__(
        self,
        paths: Paths,
        *,
        exclude: Sequence[Path] = (),
        id_field: str | None = None,
        text_field: str | None = None,
        keys_are_paths: bool = False,
    ) -> None:
        self.files = find_files(paths, exclude=exclude)
        self.num_bytes = 0
        self._id_field, self._text_field = id_field, text_field
        has_ids = id_field is not None or any(
            plain_suffix(path) in FASTA_SUFFIXES for path in self.files
        )
        self.keys = Keys(are_paths=keys_are_paths) if has_ids else None
        """Of the sentences read so far; None if their numbers are their keys."""
        for path in self.files:
            if file_kind(path) != "text" and not has_ids:
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
            if self.keys is None:
                yield from self._lines_of(path)
                continue
            fields = {"id_field": self._id_field, "text_field": self._text_field}
            for location, key, text in keyed_texts(path, self._lines_of(path), **fields):
                self.keys.add(key, location)
                yield location, text

    def _lines_of(self, path: AnyFile) -> Iterator[tuple[Location, str]]:
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
        self._keys = lines.keys
        self._digest = hashlib.sha256()
        self.count = 0
        """Lines read so far."""

    def __iter__(self) -> "LineShare":
        return self

    def __next__(self) -> tuple[int, str]:
        index, line = next(self._lines)
        self.count += 1
        key = index if self._keys is None else f"{index} {self._keys[index]}"
        self._digest.update(f"{key} {line}\n".encode())
        return index, line

    def sha256(self) -> str:
        """Return the hex hash of the lines read so far and their numbers."""
        return self._digest.hexdigest()
