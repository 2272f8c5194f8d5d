"""Text files as numbered sentences, one a line, with nothing left out.

`elmokit.corpus.readers` skips and counts bad lines, which is right for training. Here the number of
a line is the key of its vectors, so a line that cannot be read stops the job.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from elmokit.errors import FormatError
from elmokit.files.encodings import guess_encoding
from elmokit.files.sources import (
    COMPRESSIONS,
    STANDARD_INPUT,
    Paths,
    file_kind,
    find_files,
    read_pieces,
)

MAX_LINE_BYTES = 2**26
"""Longer lines are no sentences: 64 MB."""
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class NumberedLines:
    """The lines of some text files, numbered from 0 on through all of them.

    Iterate once. Blank lines are lines; the line feed (and a carriage return before it) is taken
    off, nothing else.

    Args:
        paths: Files, directories or patterns; .gz, .xz, .bz2 and .zst are decompressed.

    Raises:
        FileNotFoundError: if one does not exist.
        FormatError: if one is not plain text; while reading: for a line that is not UTF-8, holds
            NUL or is longer than `MAX_LINE_BYTES`, with its file and its number there.
    """

    def __init__(self, paths: Paths) -> None:
        self.files = find_files(paths)
        self.num_bytes = 0
        for path in self.files:
            if file_kind(path) != "text":
                raise FormatError(
                    f"{path}: expected plain text (or .gz, .xz, .bz2, .zst of it) with one "
                    "sentence a line. Write the sentences to such a file first."
                )

    def share(self, index: int, number: int) -> "LineShare":
        """Return every ``number``-th line, from line ``index`` on."""
        return LineShare(self, index, number)

    @property
    def total_bytes(self) -> int | None:
        """What ``num_bytes`` will be at the end; none where it is not known (compressed files)."""
        if any(path == STANDARD_INPUT or not path.is_file() for path in self.files):
            return None
        if any(path.suffix.lower() in COMPRESSIONS for path in self.files):
            return None
        return sum(path.stat().st_size for path in self.files)

    def __iter__(self) -> Iterator[tuple[int, str]]:
        index = 0
        for path in self.files:
            for number, line in enumerate(_split(path), start=1):
                self.num_bytes += len(line) + 1
                yield index, _decode(line, path, number)
                index += 1


class LineShare:
    """The lines of one job, and what tells them from those of another text. Iterate once."""

    def __init__(self, lines: NumberedLines, index: int, number: int) -> None:
        self._lines = (pair for pair in lines if pair[0] % number == index)
        self._digest = hashlib.sha256()
        self.count = 0
        """Lines read so far."""

    def __iter__(self) -> "LineShare":
        """Return itself."""
        return self

    def __next__(self) -> tuple[int, str]:
        """Return the next line and its number."""
        index, line = next(self._lines)
        self.count += 1
        self._digest.update(f"{index} {line}\n".encode())
        return index, line

    def sha256(self) -> str:
        """Return the hash, in hex, of the lines read so far and their numbers."""
        return self._digest.hexdigest()


def _split(path: Path) -> Iterator[bytes]:
    begun = b""
    number = 0
    for piece in read_pieces(path):
        *lines, begun = (begun + piece).split(b"\n")
        for line in lines:
            number += 1
            yield line.removeprefix(_BYTE_ORDER_MARK) if number == 1 else line
        if len(begun) > MAX_LINE_BYTES:
            raise FormatError(
                f"{path}, line {number + 1}: longer than {MAX_LINE_BYTES:,} bytes. Every line must "
                "be one sentence; split the text into sentences first."
            )
    if begun:
        yield begun.removeprefix(_BYTE_ORDER_MARK) if number == 0 else begun


def _decode(line: bytes, path: Path, number: int) -> str:
    line = line.removesuffix(b"\r")
    keep = "No line can be left out, because its number says which answer is whose."
    if 0 in line:
        raise FormatError(
            f"{path}, line {number}: holds a NUL byte at position {line.index(0)}, so this is not "
            f"plain text. {keep} If it is a text, mend it: tr -d '\\000' < IN > OUT."
        )
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        encoding = guess_encoding(line)
        advice = f"iconv -f {encoding} -t UTF-8 IN > OUT" if encoding else "find out its encoding"
        raise FormatError(
            f"{path}, line {number}: not UTF-8 (byte {error.start} of the line). {keep} Convert "
            f"the file: {advice}."
        ) from error
