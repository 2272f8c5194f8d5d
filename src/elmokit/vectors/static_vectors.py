"""Static word vectors: one vector per word, whatever the sentence."""

import logging
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import suppress

import numpy as np

from elmokit.errors import FormatError
from elmokit.files.remote import AnyFile
from elmokit.text.normalization import normalize
from elmokit.wording import counted

log = logging.getLogger(__name__)

UNKNOWN_ID = 1
"""Of a word without a vector; 0 is padding."""
MAX_DIM = MAX_WORD_BYTES = 1 << 16
"""Binary files with a larger width or longer words are damaged."""
_FEW_BAD_WORDS, _MAX_BAD_SHARE, _MAX_BAD_SHARE_OF_FILE = 100, 0.1, 0.5
"""While a file is read, it is refused above the first two together; at its end, above the third."""


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
        """S."""
        return self.values.shape[1]

    def __contains__(self, word: str) -> bool:
        """Whether there is a vector of just this spelling."""
        return word in self._ids

    def first(self, count: int) -> "StaticVectors":
        """Return the vectors of the first words."""
        return StaticVectors(self.words[:count], self.values[2 : count + 2])

    def extended(self, other: "StaticVectors") -> "StaticVectors":
        """Return these vectors and those of words that only ``other``, of the same width, has."""
        new = [word for word in other.words if word not in self._ids]
        if not new:
            return self
        rows = np.stack([other.values[other.id_of(word)] for word in new])
        return StaticVectors([*self.words, *new], np.concatenate([self.values[2:], rows]))

    def id_of(self, word: str) -> int:
        """Return the id of the first of the word's `spellings` that has a vector, or 1."""
        return next((self._ids[form] for form in spellings(word) if form in self._ids), UNKNOWN_ID)


class WantedVectors:
    """Collects the first vector of each wanted word of a file.

    ``only`` are the wanted words, in all `spellings`; None: all.
    """

    def __init__(self, only: Collection[str] | None) -> None:
        self._wanted = None if only is None else {form for word in only for form in spellings(word)}
        self._rows: dict[str, np.ndarray] = {}

    def lacks(self, word: str) -> bool:
        """Tell whether the vector of this word is still needed."""
        return word not in self._rows and (self._wanted is None or word in self._wanted)

    def add(self, word: str, row: np.ndarray, where: str) -> None:
        """Keep a vector (S,), float32, without copying; `FormatError` if it is not finite."""
        if not np.isfinite(row).all():
            raise FormatError(
                f"{where}: the vector of {word!r:.40} contains {row[~np.isfinite(row)][0]}, but "
                "values must be finite. The file is damaged, or its training diverged."
            )
        self._rows[word] = row

    def vectors(self, dim: int) -> StaticVectors:
        """Return the vectors in file order."""
        rows = list(self._rows.values())
        values = np.stack(rows) if rows else np.zeros((0, dim), dtype=np.float32)
        return StaticVectors(list(self._rows), values)


class WordDecoder:
    """Decodes the words of a file; skips and counts those that are not text.

    ``unit`` is what positions count, ``"line"`` or ``"byte"``; ``advice`` ends the error about a
    file with too many such words.
    """

    def __init__(self, path: AnyFile, unit: str, advice: str) -> None:
        self.num_words = 0
        self._path, self._unit, self._advice = path, unit, advice
        self._skipped: Counter[str] = Counter()
        self._first_position = 0

    def decode(self, raw: bytes, position: int) -> str | None:
        """Return the next word, None if it is empty, not UTF-8 or contains NUL."""
        self.num_words += 1
        if raw and b"\0" not in raw:
            with suppress(UnicodeDecodeError):
                return raw.decode()
        self._first_position = self._first_position or position
        self._skipped["empty" if not raw else "with NUL" if b"\0" in raw else "not UTF-8"] += 1
        if self._skipped.total() > _FEW_BAD_WORDS:
            self._refuse_above(_MAX_BAD_SHARE)
        return None

    def finish(self) -> None:
        """Warn about skipped words; raise `FormatError` if they are more than half of the file."""
        self._refuse_above(_MAX_BAD_SHARE_OF_FILE)
        if self._skipped:
            log.warning("%s: %s; they are skipped", self._path, self._summary())

    def _summary(self) -> str:
        counts = ", ".join(f"{fault}: {count}" for fault, count in self._skipped.most_common())
        return (
            f"{self._skipped.total()} of {counted(self.num_words, 'word')} cannot be read "
            f"({counts}), the first at {self._unit} {self._first_position:,}"
        )

    def _refuse_above(self, max_share: float) -> None:
        if self._skipped.total() > max_share * self.num_words:
            raise FormatError(f"{self._path}: {self._summary()}. {self._advice}")
