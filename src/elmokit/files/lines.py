"""Lines of UTF-8 text files, plain or compressed; bounds on what is read into memory.

Only line feeds end lines; a carriage return before one and a byte order mark at the start of the
file are removed. A line that is too long, not UTF-8 or contains NUL is a `BadLine`: corpora skip
and count it (`elmokit.files.text_reader`), elsewhere it is an error.
"""

import csv
import itertools
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from elmokit.errors import FormatError, Location
from elmokit.files.sources import AnyFile, read_pieces

MAX_TOML_BYTES = 2**20
"""Of recipes: 1 MB."""
MAX_SETTINGS_BYTES = 2**26
"""Of JSON files with settings and metadata: 64 MB."""
MAX_DOCUMENT_BYTES = 2**28
"""Of data in one JSON document: 256 MB, several times SQuAD."""
MAX_WORD_LIST_BYTES = 2**29
"""Of vocabularies: 512 MB, some 50 million words."""
_MAX_COMPRESSION = 1032
"""Bytes that deflate makes of one, at most. No other compression is believed to make more."""
_MAX_GROWTH, _GROWTH_BYTES, _SMALL_BYTES = 2, 1 << 26, 1 << 16
"""Numbers hardly shrink, so files may hold twice their size (half precision), and some megabytes
more; what small files hold is bounded by what compression can do."""


def read_bounded(
    path: str | os.PathLike[str], max_bytes: int, *, missing: str | None = None
) -> bytes:
    """Return the bytes of a file, which may be a pipe."""
    if missing is not None and not Path(path).exists():
        raise FileNotFoundError(missing)
    with Path(path).open("rb") as file:
        # pipes have no size; a byte more than allowed tells a file of the limit from a longer one
        is_larger = os.fstat(file.fileno()).st_size > max_bytes
        pieces = iter(lambda: file.read(1 << 20), b"")  # of the limit, all would be allocated
        content = b"".join(itertools.islice(pieces, 0 if is_larger else (max_bytes >> 20) + 1))
    if is_larger or len(content) > max_bytes:
        raise too_large(path, max_bytes)
    return content


def most_bytes(num_stored: int) -> int:
    """Return how many bytes may be made of numbers that are stored in so many bytes.

    A file that states more is damaged, or names what it stores many times to fill the memory.
    """
    believed = _MAX_COMPRESSION * num_stored + _SMALL_BYTES
    return min(believed, _MAX_GROWTH * num_stored + _GROWTH_BYTES)


def check_growth(path: object, num_bytes: int, num_stored: int) -> None:
    """Refuse to make more bytes of a file's arrays than `most_bytes`."""
    if num_bytes > most_bytes(num_stored):
        raise FormatError(
            f"{path}: its arrays would take {num_bytes:,} bytes in memory, of {num_stored:,} that "
            f"are stored; at most {most_bytes(num_stored):,} are believed. It is damaged, or names "
            "the same data many times."
        )


def too_large(path: str | os.PathLike[str], max_bytes: int) -> FormatError:
    """Return the error for a file beyond the size."""
    return FormatError(
        f"{os.fspath(path)}: larger than {max_bytes:,} bytes, the limit for such a file. "
        "Is it the right one? If it is data, split it."
    )


MAX_LINE_BYTES = 1 << 26
"""Longer lines are not held in memory."""
MAX_CORPUS_LINE_BYTES = 1 << 20
"""Of a sentence or paragraph of a corpus."""
CONVERT = "Convert it to UTF-8: iconv -f ENCODING -t UTF-8 IN > OUT"
_UTF8_BOM = b"\xef\xbb\xbf"


SkipReason = Literal[
    "blank", "not_utf8", "nul", "too_long", "bad_json", "no_text", "empty_sentence"
]
"""Why a line of a corpus, or a record or sentence in it, has no text."""


@dataclass(frozen=True, slots=True)
class BadLine:
    """Why some bytes are not a line of text."""

    fault: SkipReason
    position: int = 0
    """Byte of the line, from 0."""
    note: str = ""
    """What is wrong with a record, for messages."""

    def __str__(self) -> str:
        if self.note:
            return self.note
        if self.fault == "too_long":
            return (
                f"longer than {MAX_LINE_BYTES:,} bytes, or in a corpus {MAX_CORPUS_LINE_BYTES:,}. "
                "Is this the right file?"
            )
        what = "a NUL byte" if self.fault == "nul" else "not UTF-8"
        return f"{what} at byte {self.position}: a binary file or another encoding. {CONVERT}."


def raw_lines(path: AnyFile, max_line_bytes: int) -> Iterator[bytes | None]:
    """Yield undecoded lines for `decode_line`; None for a line that is too long."""
    pieces = iter(read_pieces(path))
    head = next(pieces, b"").removeprefix(_UTF8_BOM)
    yield from split_lines(itertools.chain([head], pieces), max_line_bytes)


def split_lines(pieces: Iterable[bytes], max_line_bytes: int) -> Iterator[bytes | None]:
    """Yield lines without their line feed; None for a line that is too long."""
    begun: list[bytes] = []  # joined at the line feed: adding to bytes would be quadratic
    num_bytes = 0
    for piece in pieces:
        end, *rest = piece.split(b"\n")
        begun.append(end)
        num_bytes += len(end)
        for line in rest:
            yield None if num_bytes > max_line_bytes else b"".join(begun)
            begun, num_bytes = [line], len(line)
        if num_bytes > max_line_bytes:
            begun.clear()
    if num_bytes:
        yield None if num_bytes > max_line_bytes else b"".join(begun)


def decode_line(raw: bytes | None) -> str | BadLine:
    """Return the text of a line of `raw_lines`, or what is wrong with it."""
    if raw is None:
        return BadLine("too_long")
    if b"\0" in raw:
        return BadLine("nul", raw.index(b"\0"))
    try:
        return raw.removesuffix(b"\r").decode("utf-8")
    except UnicodeDecodeError as error:
        return BadLine("not_utf8", error.start)


def text_of_line(raw: bytes | None, path: Any, line: int | None, *, reason: str = "") -> str:
    """Return the text of a line of `raw_lines`.

    The other arguments are for error messages: the line from 1, or None for a whole document, and
    the reason why it cannot be skipped, as a sentence.
    """
    text = decode_line(raw)
    if isinstance(text, BadLine):
        raise Location(path=path, line=line).error(f"{text} {reason}".rstrip())
    return text


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (number from 1, line); raise `FormatError` for a `BadLine` or damaged compression."""
    for number, raw in enumerate(raw_lines(path, MAX_LINE_BYTES), 1):
        yield number, text_of_line(raw, path, number)


def csv_rows(path: AnyFile, lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield rows with the number of their first line: a quoted field may contain line ends."""
    # of the whole process; Python's own is 131,072
    csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE_BYTES))
    reader = csv.reader((f"{line}\n" for line in lines), strict=True)
    first_line = 1
    try:
        for row in reader:
            yield first_line, row
            first_line = reader.line_num + 1
    except csv.Error as error:
        raise Location(path=path, line=first_line).error(
            f"invalid row of comma-separated values: {error}. Quote a field that contains a "
            "comma, a quotation mark or a line end, and double quotation marks inside."
        ) from error


def read_text(path: Path) -> str:
    """Read a JSON document as text, without byte order mark."""
    return text_of_line(read_whole(path, MAX_DOCUMENT_BYTES), path, None)


def read_whole(path: Path, max_bytes: int) -> bytes:
    """Return the bytes of a text file, decompressed and without byte order mark."""
    content = bytearray()
    for piece in read_pieces(path):
        content += piece
        if len(content) > max_bytes:
            raise too_large(path, max_bytes)
    return bytes(content).removeprefix(_UTF8_BOM)
