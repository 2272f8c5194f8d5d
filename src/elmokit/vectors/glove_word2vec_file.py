"""Word vectors as text (GloVe, word2vec, fastText's .vec), and word2vec's binary form.

In text a line is a word and its numbers, separated by blanks or tabs. word2vec
and fastText begin with a line of two numbers, the word count and the width. In the binary form such
a line comes first, and a word is followed by a blank, its values (little endian) and, in most
files, a line feed.
"""

import io
from collections.abc import Collection
from pathlib import Path

import numpy as np

from elmokit.errors import FormatError
from elmokit.files.lines import MAX_LINE_BYTES, raw_lines
from elmokit.files.sources import open_stream
from elmokit.vectors.static_vectors import StaticVectors, WordRows

MAX_DIM = MAX_WORD_BYTES = 1 << 16
"""Binary files with a larger width or longer words are damaged."""
_LONG_ROW_BYTES = 1 << 15
_SMALLEST, _LARGEST = 1e-12, 1e12
"""Between them are the numbers of nearly any vector; text read as float32 is outside."""


def is_binary(head: bytes) -> bool:
    """Tell whether a word2vec header is followed by what is no row of text."""
    header, _, body = head.partition(b"\n")
    row, end, _ = body.lstrip().partition(b"\n")
    # where a long row is cut, its last number may be no number
    fields = row.split()[: None if end or len(row) < _LONG_ROW_BYTES else -1]
    return _is_header(header) and bool(fields) and not _is_number(fields[-1])


def _is_header(line: bytes) -> bool:
    fields = line.split()
    return len(fields) == 2 and all(field.isdigit() and len(field) < 12 for field in fields)


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


# --- text


def read_text(path: Path, only: Collection[str] | None) -> StaticVectors:
    """Read vectors as text: blank lines are ignored, words that are no text skipped and counted."""
    rows = WordRows(path, only)
    dim = promised = None
    for number, raw in enumerate(raw_lines(path, MAX_LINE_BYTES), 1):
        line = (raw or b"").rstrip()
        if number == 1 and _is_header(line):
            promised, dim = map(int, line.split())
        elif line or raw is None:
            try:
                dim = _add_line(rows, line, dim)
            except ValueError as error:
                begin = line.split(b" ")[0].decode(errors="replace")
                raise FormatError(
                    f"{path}, line {number}, after the word {begin!r:.40}: {error} Is the file "
                    "truncated, or its first line wrong?"
                ) from error
    if not dim:
        raise FormatError(f"{path}: no word vectors: a word and its numbers per line are needed.")
    if promised not in (None, rows.num_words):
        raise FormatError(
            f"{path}: the first line promises {promised:,} words, but {rows.num_words:,} follow."
        )
    return rows.vectors(dim)


def _add_line(rows: WordRows, line: bytes, dim: int | None) -> int:
    """Add the vector of a line, and return its width, by default that of this line."""
    is_first = rows.num_words == 0
    dim = max(1, len(line.split()) - 1) if dim is None else dim
    fields = line.rsplit(None, dim)  # from the right: words may contain blanks, numbers do not
    if len(fields) == dim and line[:1].isspace():
        fields.insert(0, b"")  # an empty word
    if len(fields) <= dim:
        raise ValueError(f"{len(fields) - 1} numbers, but {dim} are needed.")
    parts = fields[0].split()
    if is_first and len(parts) > 1 and _is_number(parts[-1]):  # would be a part of the word
        raise ValueError(f"more than {dim} numbers.")
    word = rows.decode(fields[0])
    if word is None or rows.lacks(word):  # without a word the numbers are only checked
        with np.errstate(over="ignore", invalid="ignore"):  # `add` refuses what is not finite
            values = np.array(b" ".join(fields[1:]).decode().split(" "), dtype=np.float32)
        if word is not None:
            rows.add(word, values)
    return dim


# --- the binary form


def read_binary(path: Path, only: Collection[str] | None) -> StaticVectors:
    stream, rows = open_stream(path), WordRows(path, only)
    header = _read_until(stream, b"\n", what="the first line", path=path)
    count, dim = map(int, header.split())
    if not (0 < dim <= MAX_DIM and count > 0):
        raise FormatError(f"{path}, line 1: invalid count {count} or width {dim}.")
    wrong = f"The file is damaged, or its first line ({count:,} words of {dim} numbers) is wrong."
    values = np.zeros(dim, "<f4")
    for number in range(1, count + 1):
        what, before = f"word {number:,} of {count:,} of {dim} numbers", values
        raw = _read_until(stream, b" ", what=what, path=path).lstrip(b"\n")
        content = stream.read(4 * dim)
        if len(content) < 4 * dim:
            raise FormatError(f"{path} ends in the middle of {what}. {wrong}")
        values, word = np.frombuffer(content, "<f4"), rows.decode(raw)
        # the rest of a word with a blank is read as numbers, and its last ones as the next word
        if word is None and not _is_usual(before):
            raise FormatError(
                f"{path}, word {number - 1:,}: a word with a blank? Write such words as text "
                f"(gensim: save_word2vec_format(FILE, binary=False)). Else: {wrong}"
            )
        if word is not None and rows.lacks(word):
            rows.add(word, values.astype(np.float32))
    if rest := stream.read(32).strip(b"\n"):
        raise FormatError(f"{path}: {rest!r} follows the last word. {wrong}")
    return rows.vectors(dim)


def _is_usual(values: np.ndarray) -> bool:
    with np.errstate(invalid="ignore"):  # a signaling NaN warns when it is converted
        sizes = np.abs(values[values != 0].astype(np.float64))
    return bool(((sizes > _SMALLEST) & (sizes < _LARGEST)).all())


def _read_until(stream: io.BufferedReader, end: bytes, *, what: str, path: Path) -> bytes:
    """Return the bytes before the next ``end``, which is passed over."""
    parts = b""
    while len(parts) <= MAX_WORD_BYTES and (ahead := stream.peek(1)):
        border = ahead.find(end)
        if border >= 0:
            return parts + stream.read(border + 1)[:-1]
        parts += stream.read(min(len(ahead), MAX_WORD_BYTES + 1))
    raise FormatError(f"{path}: {what} has no end. The file is truncated or damaged.")
