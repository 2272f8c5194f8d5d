"""How much of a corpus repeats itself, and how much of the validation text is also in it.

Sentences are compared by hashes, after tokenization, so that line breaks do not matter. A sentence
weighs as many words as it has: short ones (``Yes .``) recur in any text and say nothing.
"""

import numpy as np

from elmokit.corpus.shard_file import Shard
from elmokit.corpus.shards import ShardSet

MAX_SENTENCES, MAX_VALID_SENTENCES = 500_000, 20_000
"""About so many are compared of larger texts."""


class Repeats:
    """Compares the sentences of a corpus with each other and with those of the validation text.

    ``add`` every shard of the corpus; 16 bytes are kept for each compared sentence.
    """

    def __init__(self, num_sentences: int, valid: ShardSet | None) -> None:
        self._num_sentences = num_sentences
        self._samples: list[np.ndarray] = []
        parts = [np.zeros((2, 0), np.uint64)]
        if valid is not None:
            for shard in map(valid.load, range(len(valid))):
                parts.append(_sample(_hashed(shard), valid.num_sentences, MAX_VALID_SENTENCES))
        self._valid_hashes, self._valid_words = np.concatenate(parts, axis=1)
        self._is_shared = np.zeros(len(self._valid_hashes), dtype=bool)

    def add(self, shard: Shard) -> None:
        hashed = _hashed(shard)
        self._is_shared |= np.isin(self._valid_hashes, hashed[0])
        self._samples.append(_sample(hashed, self._num_sentences, MAX_SENTENCES))

    def shared_share(self) -> float:
        whole = int(self._valid_words.sum())
        return int(self._valid_words[self._is_shared].sum()) / whole if whole else 0.0

    def repeated_share(self) -> float:
        hashes, num_words = np.concatenate(self._samples, axis=1)
        _, first = np.unique(hashes, return_index=True)
        whole = int(num_words.sum())
        return 1 - int(num_words[first].sum()) / whole if whole else 0.0


def _sample(hashed: np.ndarray, num_sentences: int, max_sentences: int) -> np.ndarray:
    # by hash, so that all copies of a sentence are in the sample or none
    every = np.uint64(1 + num_sentences // max_sentences)
    return hashed[:, hashed[0] % every == 0]


def _hashed(shard: Shard) -> np.ndarray:
    """Return hashes and word counts of sentences, uint64 (2, S)."""
    # Python's hashes of strings differ from process to process, but not within one
    of_word = np.fromiter(map(hash, shard.words), np.int64, len(shard.words)).view(np.uint64)
    begins, lengths = shard.offsets[:-1], np.diff(shard.offsets)
    places = np.arange(len(shard.tokens)) - np.repeat(begins, lengths)
    # odd factors are invertible modulo 2 ** 64, so no word is lost from the sum
    factors = (2 * places + 1).view(np.uint64)  # tell orders of the words apart
    hashes = np.add.reduceat(of_word[shard.tokens] * factors, begins)
    return np.stack([hashes, lengths.astype(np.uint64)])
