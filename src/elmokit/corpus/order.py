"""The order of shards and sentences in an epoch: a function of seed and epoch."""

from typing import Literal

import numpy as np

from elmokit.corpus.shards import ShardSet

Shuffle = Literal["sentences", "none"]
"""``sentences`` reshuffles groups of shards, and the sentences within each, every epoch; ``none``
keeps the order of the text."""
SHARDS_TOGETHER = 8
"""Most shards whose sentences are shuffled together: a shard is a stretch of the text, so one at a
time would mean long runs of similar text."""


class SentenceOrder:
    """Computes the order on demand, without state, so that a stream can resume anywhere."""

    def __init__(self, shards: ShardSet, *, seed: int, shuffle: Shuffle) -> None:
        self._shards = shards
        self.seed = seed
        self.shuffle: Shuffle = shuffle
        together = 1 if shuffle == "none" else SHARDS_TOGETHER
        self.num_groups = -(-len(shards) // together)

    def groups(self, epoch: int) -> list[tuple[int, ...]]:
        """Return an epoch's groups of shards in order.

        A group is every ``num_groups``-th shard, so that all have a similar mixture of texts.
        """
        num_shards = len(self._shards)
        firsts = np.arange(self.num_groups)
        if self.shuffle != "none":
            # the third number differs from those of the sentence orders, which are smaller
            rng = np.random.default_rng((self.seed, epoch, num_shards))
            firsts = rng.permutation(self.num_groups)
        return [tuple(range(first, num_shards, self.num_groups)) for first in firsts.tolist()]

    def sentences(self, epoch: int, group: int) -> np.ndarray:
        """Return the order of the sentences of a group, which are numbered across its shards."""
        shards = self.groups(epoch)[group]
        num_sentences = sum(self._shards.entries[shard].num_sentences for shard in shards)
        if self.shuffle == "none":
            return np.arange(num_sentences)
        return np.random.default_rng((self.seed, epoch, group)).permutation(num_sentences)
