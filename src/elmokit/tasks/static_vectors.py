"""Static word vectors (word2vec, GloVe, fastText): one vector a word, whatever its sentence."""

import os
from collections.abc import Collection
from pathlib import Path

import numpy as np

from elmokit.errors import FormatError
from elmokit.tasks.formats.reading import numbered_lines


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
        FormatError: for a line with fewer numbers than the first, or none, with file and line.
    """
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"There is no file of word vectors {file}.")
    wanted = None if only is None else set(only) | {word.lower() for word in only}
    words: list[str] = []
    rows: list[np.ndarray] = []
    seen: set[str] = set()
    dim = 0
    for number, line in numbered_lines(file):
        fields = line.rstrip().split(" ")
        if number == 1 and len(fields) == 2 and all(field.isdecimal() for field in fields):
            dim = int(fields[1])  # word2vec
            continue
        if len(fields) < 2:
            continue
        dim = dim or len(fields) - 1
        word = " ".join(fields[:-dim])  # some files have words with blanks
        if not word:
            raise FormatError(
                f"{file}, line {number}: {len(fields) - 1} numbers after {fields[0]!r:.40}, but "
                f"{dim} are needed. Is the file cut?"
            )
        if word in seen or (wanted is not None and word not in wanted):
            continue
        try:
            rows.append(np.array(fields[-dim:], dtype=np.float32))
        except ValueError as error:
            raise FormatError(
                f"{file}, line {number}: not numbers after the word {word!r:.40}: {error}. Word "
                "vectors in text form have a word and its numbers on each line."
            ) from error
        seen.add(word)
        words.append(word)
    if not dim:
        raise FormatError(
            f"{file}: no word vectors. Give a file with a word and its numbers a line."
        )
    values = np.stack(rows) if rows else np.zeros((0, dim), dtype=np.float32)
    return StaticVectors(words, values)
