"""Static word vectors: one vector a word, whatever its sentence."""

from collections.abc import Collection, Iterator

import numpy as np

from elmokit.errors import FormatError
from elmokit.text.normalization import normalize

MAX_DIM = MAX_WORD_BYTES = 1 << 16
"""A binary file that says more of a vector's width or a word's length is damaged."""


def spellings(word: str) -> Iterator[str]:
    """Yield the forms in which a word is looked up, the best first, some of them more than once.

    As it is and in lower case; then both by normalization ``plain-1``, since vectors of plain text
    have ``"`` but no curly quote and no ``-LRB-``.
    """
    yield word
    yield word.lower()
    plain = normalize(word, "plain-1")
    yield plain
    yield plain.lower()


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
        """Return the id of the first of the word's `spellings` that has a vector, or 1."""
        return next((self._ids[form] for form in spellings(word) if form in self._ids), 1)


class KeptVectors:
    """Collects the vectors of a file: of wanted words alone, of each its first.

    Args:
        only: Words that are wanted, in all `spellings`; none: all of them.
    """

    def __init__(self, only: Collection[str] | None) -> None:
        self._wanted = None if only is None else {form for word in only for form in spellings(word)}
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
