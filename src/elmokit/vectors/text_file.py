"""Word vectors as text (GloVe, word2vec, .vec): a word and its numbers per line.

They are separated by blanks; a tab may follow the word.

word2vec and fastText begin with a line of two numbers, the word count and the width.
"""

from collections.abc import Collection, Iterable
from typing import IO

import numpy as np

from elmokit.errors import FormatError
from elmokit.files.byte_stream import ByteStream
from elmokit.files.lines import numbered_lines
from elmokit.vectors.static_vectors import KeptVectors, StaticVectors


def recognizes(head: bytes) -> bool:
    """Accept any file: the other formats are tried first."""
    return True


def read(stream: ByteStream, only: Collection[str] | None) -> StaticVectors:
    """Read vectors in text form; ``only`` are the wanted words, in all `spellings`, None: all.

    Blank lines are ignored.

    Raises:
        FormatError: for a line with no, fewer or invalid numbers, with file and line; for counts
            of words or numbers that differ from the header.
    """
    file, kept = stream.path, KeptVectors(only)
    dim = num_words = 0
    promised = None
    for number, line in numbered_lines(file):
        fields = _fields(line)
        if number == 1 and is_header(fields):
            promised, dim = map(int, fields)
            continue
        if not line.strip():
            continue
        where = f"{file}, line {number}"
        if len(fields) < 2:
            raise FormatError(
                f"{where}: no numbers after {fields[0]!r:.40}. Word vectors in text form have a "
                "word and its numbers on each line, separated by blanks."
            )
        num_words += 1
        if num_words == 1 and promised is not None:
            _check_width(fields, dim, where)
        dim = dim or len(fields) - 1
        word = " ".join(fields[:-dim])  # words may contain blanks
        if not word:
            raise FormatError(
                f"{where}: {len(fields) - 1} numbers after {fields[0]!r:.40}, but {dim} are "
                "needed. Is the file truncated?"
            )
        if kept.wants(word):
            kept.keep(word, _numbers(word, fields[-dim:], where), where)
    if not dim:
        raise FormatError(
            f"{file}: no word vectors. Give a file with a word and its numbers per line."
        )
    if promised not in (None, num_words):
        raise FormatError(
            f"{file}: the first line promises {promised:,} words, but {num_words:,} follow. The "
            "file is truncated or was concatenated; correct the first line if it is complete."
        )
    return kept.vectors(dim)


def _fields(line: str) -> list[str]:
    """Divide a line into its word, which may contain blanks, and its numbers."""
    word, tab, numbers = line.rstrip().partition("\t")
    return [word, *numbers.split()] if tab else word.split(" ")


def is_header(fields: list[str]) -> bool:
    """Tell whether the fields of a first line are a word2vec header: count and width."""
    return len(fields) == 2 and all(
        field.isascii() and field.isdecimal() and len(field) < 12 for field in fields
    )


def is_number(field: str | bytes) -> bool:
    """Tell whether a field is a decimal number."""
    try:
        float(field)
    except ValueError:
        return False
    return True


def _check_width(fields: list[str], dim: int, where: str) -> None:
    """Reject a first vector wider than the header says: numbers would become its word."""
    surplus = fields[1:-dim] if dim else fields[1:]
    if surplus and all(map(is_number, surplus)):
        raise FormatError(
            f"{where}: {len(fields) - 1} numbers after {fields[0]!r:.40}, but the first line of "
            f"the file says that vectors have {dim}. Correct that line, or use another file."
        )


def _numbers(word: str, fields: list[str], where: str) -> np.ndarray:
    try:
        with np.errstate(over="ignore"):  # 1e99 becomes inf, which is refused with its word
            return np.array(fields, dtype=np.float32)
    except ValueError as error:
        raise FormatError(
            f"{where}: invalid numbers after the word {word!r:.40}: {error}. Word vectors in text "
            "form have a word and its numbers on each line."
        ) from error


def write_rows(file: IO[bytes], rows: Iterable[tuple[str, np.ndarray]]) -> None:
    """Write words and float32 rows, in the shortest decimals that restore the same float32."""
    for word, row in rows:
        file.write(f"{word} {' '.join(row.astype(str))}\n".encode())
