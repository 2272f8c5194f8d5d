"""Static word vectors: one vector per word, whatever the sentence."""

from collections.abc import Collection, Iterator

import numpy as np

from elmokit.errors import FormatError
from elmokit.text.normalization import normalize

UNKNOWN_ID = 1
"""Of a word without a vector; 0 is padding."""
MAX_DIM = MAX_WORD_BYTES = 1 << 16
"""Binary files with a larger width or longer words are damaged."""


def spellings(word: str) -> Iterator[str]:
    """Yield the forms under which a word is looked up, best first, with repetitions.

    The word, its lower case, and both after normalization ``plain-1``: vectors of plain text have
    ``"`` but no curly quotes and no ``-LRB-``.
    """
    yield word
    yield word.lower()
    plain = normalize(word, "plain-1")
    yield plain
    yield plain.lower()


class StaticVectors:
    """Distinct words and their vectors (len(words), S), float32.

    Ids 0 (padding) and 1 (a word without a vector) have zero vectors.
    """

    def __init__(self, words: list[str], values: np.ndarray) -> None:
        if values.shape[0] != len(words):
            raise ValueError(f"{len(words)} words need as many rows, got {values.shape}.")
        self.words = words
        self.values = np.zeros((len(words) + 2, values.shape[1]), dtype=np.float32)
        self.values[2:] = values
        self._ids = {word: number for number, word in enumerate(words, 2)}

    @property
    def dim(self) -> int:
        """S."""
        return self.values.shape[1]

    def __contains__(self, word: str) -> bool:
        """Whether there is a vector of just this spelling."""
        return word in self._ids

    def first(self, count: int) -> "StaticVectors":
        """Return the vectors of the first words."""
        return StaticVectors(self.words[:count], self.values[2 : count + 2])

    def extended(self, other: "StaticVectors") -> "StaticVectors":
        """Return these vectors and those of words that only ``other`` has.

        Raises:
            ValueError: if the widths differ.
        """
        new = [word for word in other.words if word not in self._ids]
        if not new:
            return self
        rows = np.stack([other.values[other.id_of(word)] for word in new])
        return StaticVectors([*self.words, *new], np.concatenate([self.values[2:], rows]))

    def id_of(self, word: str) -> int:
        """Return the id of the first of the word's `spellings` that has a vector, or 1."""
        return next((self._ids[form] for form in spellings(word) if form in self._ids), UNKNOWN_ID)


class KeptVectors:
    """Collects the first vector of each wanted word of a file.

    ``only`` are the wanted words, in all `spellings`; None: all.
    """

    def __init__(self, only: Collection[str] | None) -> None:
        self._wanted = None if only is None else {form for word in only for form in spellings(word)}
        self._rows: dict[str, np.ndarray] = {}

    def wants(self, word: str) -> bool:
        """Tell whether the vector of this word is still needed."""
        return word not in self._rows and (self._wanted is None or word in self._wanted)

    def keep(self, word: str, row: np.ndarray, where: str) -> None:
        """Keep a vector (S,), float32, without copying; ``where`` is for the error.

        Raises:
            FormatError: if a value is not finite.
        """
        if not np.isfinite(row).all():
            raise FormatError(
                f"{where}: the vector of {word!r:.40} contains {row[~np.isfinite(row)][0]}, but "
                "values must be finite. The file is damaged, or its training diverged."
            )
        self._rows[word] = row

    def vectors(self, dim: int) -> StaticVectors:
        """Return the kept vectors in file order."""
        rows = list(self._rows.values())
        values = np.stack(rows) if rows else np.zeros((0, dim), dtype=np.float32)
        return StaticVectors(list(self._rows), values)
