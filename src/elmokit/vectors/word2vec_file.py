"""word2vec's binary files: a line of count and width, then words and float32 values.

A word is followed by a blank, its values (little endian) and, in most files, a line feed.
"""

import codecs
import logging
from collections.abc import Collection, Iterable
from typing import IO

import numpy as np

from elmokit.errors import FormatError
from elmokit.files.byte_stream import ByteStream
from elmokit.vectors.static_vectors import MAX_DIM, MAX_WORD_BYTES, KeptVectors, StaticVectors
from elmokit.vectors.text_file import is_header, is_number

log = logging.getLogger(__name__)

_HEADER_BYTES = 64
_FEW_BAD_WORDS, _MAX_BAD_SHARE = 100, 0.1
"""Beyond both limits the header does not match the file."""


def recognizes(head: bytes) -> bool:
    """Tell whether a word2vec header is followed by binary data."""
    header, line_feed, body = head.partition(b"\n")
    fields = header.decode("ascii", "replace").strip().split(" ")
    if not line_feed or not is_header(fields):
        return False
    first = body.partition(b"\n")[0].rstrip().split(b" ")
    if len(first) > int(fields[1]) and all(map(is_number, first[-int(fields[1]) :])):
        return False
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(body)
    except UnicodeDecodeError:
        return True
    return any(character < " " and character not in "\t\r\n" for character in text)


def read(stream: ByteStream, only: Collection[str] | None) -> StaticVectors:
    """Read vectors in word2vec's binary form; ``only`` as in `text_file.read`.

    Raises:
        FormatError: for a truncated or damaged file, with its position.
    """
    header = stream.take_until(b"\n", _HEADER_BYTES, "the first line")
    count, dim = map(int, header.split())
    if not (0 < dim <= MAX_DIM and count > 0):
        raise FormatError(
            f"{stream.path}, line 1: invalid count {count} or width {dim}. Word vectors in binary "
            "form begin with a line of these two numbers."
        )
    kept, num_bad, first_bad = KeptVectors(only), 0, 0
    for number in range(1, count + 1):
        what = f"word {number:,} of {count:,} (width {dim})"
        raw = stream.take_until(b" ", MAX_WORD_BYTES, what).lstrip(b"\n")
        position = stream.position - len(raw) - 1
        values = stream.take(4 * dim, what)
        word = _decode(raw)
        if word is None:
            num_bad, first_bad = num_bad + 1, first_bad or position
            if num_bad > _FEW_BAD_WORDS and num_bad > _MAX_BAD_SHARE * number:
                raise FormatError(
                    f"{stream.path}: {num_bad} of the first {number:,} words are not UTF-8, the "
                    f"first at byte {first_bad:,}. The file is damaged, or its first line "
                    f"({count:,} words of {dim} numbers) is wrong."
                )
        elif kept.wants(word):
            row = np.frombuffer(values, "<f4").astype(np.float32)
            kept.keep(word, row, f"{stream.path}, byte {position:,}")
    if rest := stream.ahead(32).strip(b"\n"):
        raise FormatError(
            f"{stream.path}, byte {stream.position:,}: the file continues ({rest!r}) after the "
            f"{count:,} words of {dim} numbers that its first line promises. It is damaged, or the "
            "first line is wrong."
        )
    if num_bad:
        log.warning(
            "%s: %d of %d words are not UTF-8 (the first at byte %d); they are ignored",
            stream.path, num_bad, count, first_bad,
        )  # fmt: skip
    return kept.vectors(dim)


def _decode(raw: bytes) -> str | None:
    """Return a word, None if it is not text; NUL, frequent in binary numbers, is not text."""
    try:
        return None if not raw or b"\0" in raw else raw.decode("utf-8")
    except UnicodeDecodeError:
        return None


def write_rows(file: IO[bytes], rows: Iterable[tuple[str, np.ndarray]]) -> None:
    """Write words and float32 rows after the header."""
    for word, row in rows:
        file.write(word.encode() + b" " + row.tobytes() + b"\n")
