"""Holding out validation sentences from a streamed corpus; how much of a text repeats itself."""

import heapq
import random
from collections.abc import Iterable, Iterator
from itertools import islice

import numpy as np

from elmokit.corpus.shards import Shard, ShardSet

MAX_SENTENCES, MAX_VALID_SENTENCES = 500_000, 20_000
"""About so many are compared of larger texts."""


class HoldOut:
    """Hold out a small part of a corpus of unknown length, spread evenly over all of it.

    Each block of neighboring sentences draws a random number; the blocks with the smallest numbers
    are held, up to the limits: at least one block of two, at most ``max_sentences`` (rounded up to
    a block) and ``max_words``. Displaced blocks are trained on after all. The same corpus gives
    the same split.
    """

    def __init__(
        self,
        *,
        share: float,
        max_sentences: int,
        max_words: int = 100_000,
        block_sentences: int = 5,
        seed: int = 0,
    ) -> None:
        self.share, self.seed = share, seed
        self.max_sentences, self.max_words = max_sentences, max_words
        self.block_sentences = block_sentences
        self._held: list[tuple[float, int, list[list[str]]]] = []  # heap: largest number first
        self._num_words = 0

    @property
    def sentences(self) -> list[list[str]]:
        """In corpus order; final once `split` is exhausted."""
        by_index = sorted(self._held, key=lambda entry: entry[1])
        return [sentence for _, _, block in by_index for sentence in block]

    def split(self, sentences: Iterable[list[str]]) -> Iterator[list[str]]:
        """Yield the training sentences; displaced blocks come late, out of corpus order."""
        self._held.clear()
        self._num_words = 0
        draw = random.Random(self.seed).random
        iterator = iter(sentences)
        index = 0  # of the block
        # The blocks with the smallest random numbers are a uniform sample whatever the length of
        # the corpus, which is not known before its end.
        while block := list(islice(iterator, self.block_sentences)):
            number = draw()
            if number < self.share or not self._held or number < -self._held[0][0]:
                heapq.heappush(self._held, (-number, index, block))
                self._num_words += sum(map(len, block))
                while self._is_too_much():
                    yield from self._release()
            else:
                yield from block
            index += 1
        if index == 1:  # nothing would be left to train on
            yield from self._release()

    def _is_too_much(self) -> bool:
        num_blocks = len(self._held)
        return num_blocks > 1 and (
            -self._held[0][0] >= self.share
            or (num_blocks - 1) * self.block_sentences >= self.max_sentences
            or self._num_words > self.max_words
        )

    def _release(self) -> list[list[str]]:
        _, _, block = heapq.heappop(self._held)
        self._num_words -= sum(map(len, block))
        return block


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
