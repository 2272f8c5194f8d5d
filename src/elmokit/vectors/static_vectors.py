"""Static word vectors: one vector a word, whatever its sentence; and their text form.

`elmokit.vectors.vector_files` reads files of any form.
"""

import os
from collections.abc import Collection
from pathlib import Path

import numpy as np

from elmokit.errors import FormatError
from elmokit.files.lines import numbered_lines

MAX_DIM = MAX_WORD_BYTES = 1 << 16
"""A binary file that says more of a vector's width or a word's length is damaged."""


class StaticVectors:
    """Words and their vectors.

    Id 0 is padding and id 1 a word without a vector; both have zeros.

    Args:
        words: Without repetition.
        values: (len(words), S), float32.
    """

    def __init__(self, words: list[str], values: np.ndarray) -> None:
        if values.shape[0] != len(words):
            raise ValueError(f"{len(words)} words need as many rows, got {values.shape}.")
        self.words = words
        rows = np.zeros((len(words) + 2, values.shape[1]), dtype=np.float32)
        rows[2:] = values
        self.values = rows
        self._ids = {word: number for number, word in enumerate(words, 2)}

    @property
    def dim(self) -> int:
        """S."""
        return self.values.shape[1]

    def extended(self, other: "StaticVectors") -> "StaticVectors":
        """Return these vectors and those of words that only ``other`` has.

        Raises:
            ValueError: if the widths differ.
        """
        new = [word for word in other.words if word not in self._ids]
        rows = [other.values[other.id_of(word)] for word in new]
        if not new:
            return self
        values = np.concatenate([self.values[2:], np.stack(rows)])
        return StaticVectors([*self.words, *new], values)

    def id_of(self, word: str) -> int:
        """Return the id of a word, of its lower-case form where it has none itself, or 1."""
        found = self._ids.get(word)
        return self._ids.get(word.lower(), 1) if found is None else found


class KeptVectors:
    """Collects the vectors of a file: of wanted words alone, of each its first.

    Args:
        only: Words that are wanted, in lower case too; none: all of them.
    """

    def __init__(self, only: Collection[str] | None) -> None:
        self._wanted = None if only is None else set(only) | {word.lower() for word in only}
        self._rows: dict[str, np.ndarray] = {}

    def wants(self, word: str) -> bool:
        """Whether the vector of this word is still to be kept."""
        return word not in self._rows and (self._wanted is None or word in self._wanted)

    def keep(self, word: str, row: np.ndarray, where: str) -> None:
        """Keep a vector (S,).

        Args:
            word: Its word.
            row: Its values, float32; they are not copied.
            where: File and position, for the error.

        Raises:
            FormatError: if a value is no number.
        """
        if not np.isfinite(row).all():
            raise FormatError(
                f"{where}: the vector of {word!r:.40} holds {row[~np.isfinite(row)][0]}, and only "
                "numbers can be used. The file is damaged, or its training diverged."
            )
        self._rows[word] = row

    def vectors(self, dim: int) -> StaticVectors:
        """Return what was kept, in the order of the file."""
        rows = list(self._rows.values())
        values = np.stack(rows) if rows else np.zeros((0, dim), dtype=np.float32)
        return StaticVectors(list(self._rows), values)


def existing_file(path: str | os.PathLike[str]) -> Path:
    """Return the path of a file of word vectors.

    Raises:
        FileNotFoundError: if there is no such file.
    """
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"There is no file of word vectors {file}.")
    return file


def read_text_vectors(
    path: str | os.PathLike[str], *, only: Collection[str] | None = None
) -> StaticVectors:
    """Read vectors in text form: a word and its numbers a line, blanks between them.

    A first line of two numbers (word2vec) gives their count and width. Compressed files are read as
    they are.

    Args:
        path: The file.
        only: Words that are wanted, in lower case too; none: all of them.

    Raises:
        FileNotFoundError: if there is no such file.
        FormatError: for a line with fewer numbers than the first, with other things than numbers,
            or none, with file and line (blank lines are passed over); for more or fewer words or
            numbers than the first line promises.
    """
    file = existing_file(path)
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
