"""Token vectors kept between calls, since most words in running text were seen before."""

import threading
from collections import OrderedDict
from collections.abc import Hashable, Sequence

import numpy as np

from elmokit.shapes import Float, Integer

DEFAULT_BYTES = 64 * 2**20
"""Memory: 30,000 words of the original model, 94,000 of the small one."""
ENTRY_BYTES = 200
"""Memory for a word and its place in the dictionary (measured), besides its vector."""
MAX_CHARACTERS = 256
"""Longer words are not kept: they hardly ever come again, and may have megabytes."""


class WordCache:
    """Vectors (D,) of the most recently used words, for one set of weights and one precision."""

    def __init__(self, dim: int, *, max_bytes: int = DEFAULT_BYTES) -> None:
        self._capacity = max_bytes // (4 * dim + ENTRY_BYTES)
        self._vectors = np.empty((self._capacity, dim), dtype=np.float32)
        self._rows: OrderedDict[Hashable, int] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._rows)

    def read(
        self, words: Sequence[Hashable]
    ) -> tuple[Float[np.ndarray, "U D"], Integer[np.ndarray, " M"]]:
        """Return the vectors of distinct words (or their ids), and the positions still to fill."""
        rows = np.empty(len(words), dtype=np.int64)
        with self._lock:
            for i, word in enumerate(words):
                rows[i] = row = self._rows.get(word, -1)
                if row >= 0:
                    self._rows.move_to_end(word)
            missing = np.flatnonzero(rows < 0)
            vectors = np.empty((len(words), self._vectors.shape[1]), dtype=np.float32)
            vectors[rows >= 0] = self._vectors[rows[rows >= 0]]
        return vectors, missing

    def write(self, words: Sequence[Hashable], vectors: Float[np.ndarray, "U D"]) -> None:
        """Keep the vectors of distinct words, as many as fit, but for very long ones."""
        is_short = [not isinstance(word, str) or len(word) <= MAX_CHARACTERS for word in words]
        places = np.flatnonzero(is_short)[: self._capacity]
        words = [words[i] for i in places]
        rows = np.empty(len(words), dtype=np.int64)
        with self._lock:
            for i, word in enumerate(words):
                row = self._rows.pop(word, -1)
                if row < 0:
                    row = len(self._rows)
                    if row == self._capacity:
                        row = self._rows.popitem(last=False)[1]
                rows[i] = self._rows[word] = row
            self._vectors[rows] = vectors[places]
