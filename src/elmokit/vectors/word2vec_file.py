"""word2vec's binary files: a line of count and width, then words and float32 values.

A word is followed by a blank, its values (little endian) and, in most files, a line feed.
"""

import codecs
import re
from collections.abc import Collection

import numpy as np

from elmokit.errors import FormatError
from elmokit.files.byte_stream import ByteStream
from elmokit.vectors.static_vectors import (
    MAX_DIM,
    MAX_WORD_BYTES,
    StaticVectors,
    WantedVectors,
    WordDecoder,
)
from elmokit.vectors.text_file import is_header, is_number

_HEADER_BYTES = 64
_BYTES_AHEAD = 1024
"""How far into a vector the rest of a word with blanks is looked for."""
_CONTROLS = re.compile(r"[\0-\x08\x0b\x0c\x0e-\x1f\x7f]")
_FAR = 40
"""Powers of two between 1 and a number of a misread vector; others rarely have such numbers."""


def recognizes(head: bytes) -> bool:
    """Tell whether a word2vec header is followed by binary data."""
    header, line_feed, body = head.partition(b"\n")
    if not line_feed or not is_header(header.strip().split(b" ")):
        return False
    # Text may be in another encoding, so a first row that ends in a number decides.
    last_field = body.partition(b"\n")[0].split()[-1:]
    return not (last_field and is_number(last_field[0])) and not _is_text(body)


def read(stream: ByteStream, only: Collection[str] | None) -> StaticVectors:
    """Read vectors in word2vec's binary form; ``only`` as in `text_file.read`.

    Words that cannot be read are skipped as by `WordDecoder`. A file with blanks in its words is
    refused: a blank ends a word, so what follows is out of step.
    """
    header = stream.take_until(b"\n", _HEADER_BYTES, "the first line")
    count, dim = map(int, header.split())
    if not (0 < dim <= MAX_DIM and count > 0):
        raise FormatError(f"{stream.path}, line 1: invalid count {count} or width {dim}.")
    promise = f"{count:,} words of {dim} float32 numbers"
    wrong = f"The file is damaged, or its first line ({promise}) is wrong."
    wanted, words = WantedVectors(only), WordDecoder(stream.path, "byte", wrong)
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
                f"save_word2vec_format(FILE, binary=False)), or without blanks. Else: {wrong}"
            )
        word = words.decode(raw, position)
        if word is not None and wanted.lacks(word):
            wanted.add(word, np.frombuffer(values, "<f4").astype(np.float32), where)
    if rest := stream.ahead(32).strip(b"\n"):
        raise FormatError(f"{stream.path}, byte {stream.position:,}: {rest!r} follows. {wrong}")
    words.finish()
    return wanted.vectors(dim)


def _rest_of_word(values: bytes, stream: ByteStream) -> bytes:
    """Return the text at the begin of a vector that belongs to its word, which has a blank there.

    Vectors also begin with text and a blank by chance. It belongs to the word if what was read
    instead of the bytes after it is no vector: its numbers are much farther from 1.
    """
    # Nearly all vectors are told apart by this look for text alone.
    end = values.find(b" ", 0, _BYTES_AHEAD)
    if end < 0 or not _is_text(values[:end]):
        return b""
    ahead = stream.ahead(_BYTES_AHEAD)
    distance = _distance_from_one(values)
    while 0 <= end < len(ahead) and distance >= _FAR and _is_text(values[:end]):
        if _distance_from_one(values[end + 1 :] + ahead[: end + 1]) + _FAR <= distance:
            return values[: end + 1]
        end = values.find(b" ", end + 1, _BYTES_AHEAD)
    return b""


def _is_text(raw: bytes) -> bool:
    """Tell whether bytes are UTF-8 without control characters; the last may be incomplete."""
    try:
        return not _CONTROLS.search(codecs.getincrementaldecoder("utf-8")().decode(raw))
    except UnicodeDecodeError:
        return False


def _distance_from_one(values: bytes) -> float:
    """Return how many powers of two lie between 1 and the number of a vector farthest from it."""
    with np.errstate(invalid="ignore"):  # a signaling NaN warns when it is converted
        numbers = np.abs(np.frombuffer(values, "<f4").astype(np.float64))
    if not np.isfinite(numbers).all():
        return np.inf
    return float(np.abs(np.log2(numbers[numbers > 0])).max(initial=0.0))
