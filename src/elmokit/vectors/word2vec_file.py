"""word2vec's binary files: a line of count and width, then words and float32 values.

A word is followed by a blank, its values (little endian) and, in most files, a line feed.
"""

import codecs
import re
from collections.abc import Collection, Iterable
from typing import IO

import numpy as np

from elmokit.errors import FormatError
from elmokit.files.byte_stream import ByteStream
from elmokit.vectors.static_vectors import (
    MAX_DIM,
    MAX_WORD_BYTES,
    KeptVectors,
    StaticVectors,
    WordDecoder,
)
from elmokit.vectors.text_file import is_header, is_number

_HEADER_BYTES = 64
_BYTES_AHEAD = 1024
"""The rest of a word with blanks, and the next word, are looked for in as many bytes."""
_CONTROLS = re.compile(rb"[\0-\x08\x0b\x0c\x0e-\x1f\x7f]")
_FAR = 40
"""Powers of two between 1 and a number of a misread vector; others rarely have such numbers."""


def recognizes(head: bytes) -> bool:
    """Tell whether a word2vec header is followed by binary data."""
    header, line_feed, body = head.partition(b"\n")
    fields = header.strip().split(b" ")
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

    Words that cannot be read are skipped as by `WordDecoder`. A blank ends a word, so a file with
    a word that contains one is read out of step from there on, and refused.

    Raises:
        FormatError: for a truncated, damaged or misaligned file, with its position; for too many
            words that cannot be read.
    """
    header = stream.take_until(b"\n", _HEADER_BYTES, "the first line")
    count, dim = map(int, header.split())
    if not (0 < dim <= MAX_DIM and count > 0):
        raise FormatError(
            f"{stream.path}, line 1: invalid count {count} or width {dim}. Word vectors in binary "
            "form begin with a line of these two numbers."
        )
    promise = f"{count:,} words of {dim} float32 numbers"
    wrong = f"The file is damaged, or its first line ({promise}) is wrong."
    kept, words = KeptVectors(only), WordDecoder(stream.path, "byte", wrong)
    for number in range(1, count + 1):
        what = f"word {number:,} of the {promise} that the first line promises"
        raw = stream.take_until(b" ", MAX_WORD_BYTES, what).lstrip(b"\n")
        position = stream.position - len(raw) - 1
        values = stream.take(4 * dim, what)
        where = f"{stream.path}, byte {position:,}"
        if rest := _rest_of_word(values, stream):
            name = (raw + b" " + rest[:-1]).decode(errors="replace")
            raise FormatError(
                f"{where}: a word with a blank, {name!r:.60}. In the binary form a blank ends the "
                "word, so all that follows is out of step. Write such words as text (gensim: "
                "save_word2vec_format(FILE, binary=False)), or without blanks."
            )
        word = words.decode(raw, position)
        if word is not None and kept.wants(word):
            kept.keep(word, np.frombuffer(values, "<f4").astype(np.float32), where)
    if rest := stream.ahead(32).strip(b"\n"):
        raise FormatError(
            f"{stream.path}, byte {stream.position:,}: the file continues ({rest!r}) after the "
            f"{promise} that its first line promises. It is damaged, or the first line is wrong."
        )
    words.finish()
    return kept.vectors(dim)


def _rest_of_word(values: bytes, stream: ByteStream) -> bytes:
    """Return the text at the begin of a vector that belongs to its word, which has a blank there.

    Vectors also begin with text and a blank by chance. It belongs to the word if the bytes after it
    are a vector, followed by a word or the end, and what was read instead is no such thing: its
    numbers are much farther from 1, or no word follows it. Empty: no such text.
    """
    end = values.find(b" ", 0, _BYTES_AHEAD)
    if end < 0 or not _is_text(values[:end]):
        return b""
    ahead = stream.ahead(_BYTES_AHEAD)
    is_last = len(ahead) < _BYTES_AHEAD
    word_follows = _is_text(ahead.lstrip(b"\n").partition(b" ")[0])
    while 0 <= end < min(len(ahead), _BYTES_AHEAD) and _is_text(values[:end]):
        start = end + 1
        next_word = ahead[start:].removeprefix(b"\n").partition(b" ")[0]
        if _is_text(next_word) and (next_word or is_last):
            distance = _distance_from_one(values[start:] + ahead[:start])
            is_nearer = distance + _FAR <= _distance_from_one(values)
            if is_nearer or (not word_follows and distance <= _FAR):
                return values[:start]
        end = values.find(b" ", start, _BYTES_AHEAD)
    return b""


def _is_text(raw: bytes) -> bool:
    try:
        return _CONTROLS.search(raw) is None and raw.decode("utf-8") is not None
    except UnicodeDecodeError:
        return False


def _distance_from_one(values: bytes) -> float:
    """Return how many powers of two lie between 1 and the number of a vector farthest from it."""
    numbers = np.frombuffer(values, "<f4")
    if not np.isfinite(numbers).all():
        return np.inf
    sizes = np.abs(numbers[numbers != 0].astype(np.float64))
    return float(np.abs(np.log2(sizes)).max(initial=0.0))


def write_rows(file: IO[bytes], rows: Iterable[tuple[str, np.ndarray]]) -> None:
    """Write words and float32 rows after the header."""
    for word, row in rows:
        file.write(word.encode() + b" " + row.tobytes() + b"\n")
