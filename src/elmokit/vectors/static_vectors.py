"""Static word vectors: one vector per word, whatever the sentence."""

import logging
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np

from elmokit.errors import FormatError, counted
from elmokit.text.normalization import normalize

log = logging.getLogger(__name__)

UNKNOWN_ID = 1
"""Of a word without a vector; 0 is padding."""


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
        self.words = words
        self.values = np.zeros((len(words) + 2, values.shape[1]), dtype=np.float32)
        self.values[2:] = values  # (V, S)
        self._ids = {word: number for number, word in enumerate(words, 2)}

    @property
    def dim(self) -> int:
        return self.values.shape[1]

    def __contains__(self, word: str) -> bool:
        return word in self._ids

    def first(self, count: int) -> "StaticVectors":
        return StaticVectors(self.words[:count], self.values[2 : count + 2])

    def extended(self, other: "StaticVectors") -> "StaticVectors":
        """Return these vectors and those of words that only ``other``, of the same width, has."""
        new = [word for word in other.words if word not in self._ids]
        if not new:
            return self
        rows = other.values[[other.id_of(word) for word in new]]
        return StaticVectors([*self.words, *new], np.concatenate([self.values[2:], rows]))

    def id_of(self, word: str) -> int:
        """Return the id of the first of the word's `spellings` that has a vector, or 1."""
        return next((self._ids[form] for form in spellings(word) if form in self._ids), UNKNOWN_ID)


class WordRows:
    """Collects the first vector of each wanted word of a file, and counts words that are no text.

    ``only`` are the wanted words, in all `spellings`; None: all.
    """

    def __init__(self, path: Path, only: Collection[str] | None) -> None:
        self.num_words = self._num_skipped = 0
        self._path = path
        self._wanted = None if only is None else {form for word in only for form in spellings(word)}
        self._rows: dict[str, np.ndarray] = {}

    def decode(self, raw: bytes) -> str | None:
        """Return the next word; None if it is empty, not UTF-8 or contains NUL or a line feed."""
        self.num_words += 1
        if raw and b"\0" not in raw and b"\n" not in raw:
            with suppress(UnicodeDecodeError):
                return raw.decode()
        self._num_skipped += 1
        return None

    def lacks(self, word: str) -> bool:
        return word not in self._rows and (self._wanted is None or word in self._wanted)

    def add(self, word: str, row: np.ndarray) -> None:
        """Keep a vector (S,), float32, without copying; `FormatError` if it is not finite."""
        if not np.isfinite(row).all():
            raise FormatError(
                f"{self._path}: the vector of {word!r:.40} contains {row[~np.isfinite(row)][0]}. "
                "The file is damaged, or its training diverged."
            )
        self._rows[word] = row

    def vectors(self, dim: int) -> StaticVectors:
        """Return the vectors in file order; `FormatError` if most of the words are no text."""
        if self._num_skipped:
            words = counted(self.num_words, "word")
            problem = f"{self._path}: {self._num_skipped} of {words} are not UTF-8 text"
            if self._num_skipped > self.num_words / 2:
                raise FormatError(f"{problem}. The file is damaged, or in another encoding.")
            log.warning("%s; they are skipped", problem)
        rows = list(self._rows.values())
        values = np.stack(rows) if rows else np.zeros((0, dim), np.float32)
        return StaticVectors(list(self._rows), values)
