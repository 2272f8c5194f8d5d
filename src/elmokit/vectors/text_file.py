"""Word vectors as text: a word and its numbers a line, blanks between them (GloVe, word2vec, .vec).

word2vec and fastText begin with a line of two numbers, the count of the words and their width.
"""

from collections.abc import Collection, Iterable
from typing import IO

import numpy as np

from elmokit.errors import FormatError
from elmokit.files.byte_stream import ByteStream
from elmokit.files.lines import numbered_lines
from elmokit.vectors.static_vectors import KeptVectors, StaticVectors


def recognizes(head: bytes) -> bool:
    """Tell whether a file that begins like this is of the format: what no other is."""
    return True


def read(stream: ByteStream, only: Collection[str] | None) -> StaticVectors:
    """Read vectors in text form.

    Args:
        stream: At the beginning of the file.
        only: Words that are wanted, in all `spellings`; none: all of them.

    Raises:
        FormatError: for a line with fewer numbers than the first, with other things than numbers,
            or none, with file and line (blank lines are passed over); for more or fewer words or
            numbers than the first line promises.
    """
    file = stream.path
    kept = KeptVectors(only)
    dim = num_words = 0
    promised = None
    for number, line in numbered_lines(file):
        fields = line.rstrip().split(" ")
        if number == 1 and is_header(fields):
            promised, dim = map(int, fields)
            continue
        if not line.strip():
            continue
        where = f"{file}, line {number}"
        if len(fields) < 2:
            raise FormatError(
                f"{where}: no numbers after {fields[0]!r:.40}. Word vectors in text form have a "
                "word and its numbers on each line, with blanks between them."
            )
        num_words += 1
        if num_words == 1 and promised is not None:
            _check_width(fields, dim, where)
        dim = dim or len(fields) - 1
        word = " ".join(fields[:-dim])  # some files have words with blanks
        if not word:
            raise FormatError(
                f"{where}: {len(fields) - 1} numbers after {fields[0]!r:.40}, but {dim} are "
                "needed. Is the file cut?"
            )
        if kept.wants(word):
            kept.keep(word, _numbers(word, fields[-dim:], where), where)
    if not dim:
        raise FormatError(
            f"{file}: no word vectors. Give a file with a word and its numbers a line."
        )
    if promised not in (None, num_words):
        raise FormatError(
            f"{file}: the first line promises {promised:,} words, but {num_words:,} follow. The "
            "file is cut or was put together; mend the first line if all words are there."
        )
    return kept.vectors(dim)


def is_header(fields: list[str]) -> bool:
    """Whether these fields of a first line are the count and width that word2vec begins with."""
    return len(fields) == 2 and all(
        field.isascii() and field.isdecimal() and len(field) < 12 for field in fields
    )


def is_number(field: str | bytes) -> bool:
    """Whether a field is a number in decimal form."""
    try:
        float(field)
    except ValueError:
        return False
    return True


def _check_width(fields: list[str], dim: int, where: str) -> None:
    """Refuse a first vector that is wider than the header says: its word would eat numbers."""
    surplus = fields[1:-dim] if dim else fields[1:]
    if surplus and all(map(is_number, surplus)):
        raise FormatError(
            f"{where}: {len(fields) - 1} numbers after {fields[0]!r:.40}, but the first line of "
            f"the file says that vectors have {dim}. Mend the first line, or take another file."
        )


def _numbers(word: str, fields: list[str], where: str) -> np.ndarray:
    try:
        return np.array(fields, dtype=np.float32)
    except ValueError as error:
        raise FormatError(
            f"{where}: not numbers after the word {word!r:.40}: {error}. Word vectors in text form "
            "have a word and its numbers on each line."
        ) from error


def write_rows(file: IO[bytes], rows: Iterable[tuple[str, np.ndarray]]) -> None:
    """Write words and float32 rows, in the shortest decimals that give the same float32 again."""
    for word, row in rows:
        file.write(f"{word} {' '.join(row.astype(str))}\n".encode())
