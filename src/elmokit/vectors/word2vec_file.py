"""word2vec's binary files: a line of count and width, then words and float32 values.

A word is followed by a blank, its values (little endian) and, in most files, a line feed.
"""

import codecs
import re
from collections.abc import Collection
from pathlib import Path

import numpy as np

from elmokit.errors import FormatError
from elmokit.files.sources import open_stream
from elmokit.vectors import static_vectors as static
from elmokit.vectors.text_file import is_header, is_number

_CONTROLS = re.compile(r"[\0-\x08\x0b\x0c\x0e-\x1f\x7f]")
_SMALLEST, _LARGEST = 1e-12, 1e12
"""Between them are the numbers of nearly any vector; text read as float32 is outside."""


def recognizes(head: bytes) -> bool:
    """Tell whether a word2vec header is followed by binary data."""
    header, line_feed, body = head.partition(b"\n")
    if not line_feed or not is_header(header.strip().split(b" ")):
        return False
    # Text may be in another encoding, so a first row that ends in a number decides.
    last_field = body.partition(b"\n")[0].split()[-1:]
    return not (last_field and is_number(last_field[0])) and not _is_text(body)


def read(path: Path, only: Collection[str] | None) -> static.StaticVectors:
    stream, rows = open_stream(path), static.WordRows(path, only, unit="word")
    header = static.read_until(stream, b"\n", what="the first line", path=path)
    count, dim = map(int, header.split())
    if not (0 < dim <= static.MAX_DIM and count > 0):
        raise FormatError(f"{path}, line 1: invalid count {count} or width {dim}.")
    wrong = f"The file is damaged, or its first line ({count:,} words of {dim} numbers) is wrong."
    values = np.zeros(dim, "<f4")
    for number in range(1, count + 1):
        what, before = f"word {number:,} of {count:,} of {dim} numbers", values
        raw = static.read_until(stream, b" ", what=what, path=path).lstrip(b"\n")
        values = np.frombuffer(static.read_exactly(stream, 4 * dim, what=what, path=path), "<f4")
        word = rows.decode(raw, number)
        # the rest of a word with a blank is read as numbers, and its last ones as the next word
        if word is None and not _is_usual(before):
            raise FormatError(
                f"{path}, word {number - 1:,}: a word with a blank? Write such words as text "
                f"(gensim: save_word2vec_format(FILE, binary=False)). Else: {wrong}"
            )
        if word is not None and rows.lacks(word):
            rows.add(word, values.astype(np.float32), number)
    if rest := stream.read(32).strip(b"\n"):
        raise FormatError(f"{path}: {rest!r} follows the last word. {wrong}")
    return rows.vectors(dim)


def _is_usual(values: np.ndarray) -> bool:
    with np.errstate(invalid="ignore"):  # a signaling NaN warns when it is converted
        sizes = np.abs(values[values != 0].astype(np.float64))
    return bool(((sizes > _SMALLEST) & (sizes < _LARGEST)).all())


def _is_text(raw: bytes) -> bool:
    """Tell whether bytes are UTF-8 without control characters; the last may be incomplete."""
    try:
        return not _CONTROLS.search(codecs.getincrementaldecoder("utf-8")().decode(raw))
    except UnicodeDecodeError:
        return False
