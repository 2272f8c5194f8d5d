"""The order in which an epoch takes shards and sentences: a function of seed and epoch."""

from typing import Literal

import numpy as np

from elmokit.corpus.shards import ShardSet

Shuffle = Literal["sentences", "none"]
"""``sentences`` draws shards and the sentences within each anew each epoch; ``none`` keeps them."""


class SentenceOrder:
    """Nothing is kept between epochs, so a resumed stream finds its place by numbers alone.

    Args:
        shards: what is ordered.
        seed: decides the order.
        shuffle: whether there is anything to decide.
    """

    def __init__(self, shards: ShardSet, *, seed: int, shuffle: Shuffle) -> None:
        self._shards = shards
        self.seed = seed
        self.shuffle: Shuffle = shuffle

    def shards(self, epoch: int) -> np.ndarray:
        """Return the order in which an epoch visits the shards."""
        num_shards = len(self._shards)
        if self.shuffle == "none":
            return np.arange(num_shards)
        # the third number sets it apart from the sentence orders, where it is below num_shards
        return np.random.default_rng((self.seed, epoch, num_shards)).permutation(num_shards)

    def sentences(self, epoch: int, shard: int) -> np.ndarray:
        """Return the order in which an epoch takes the sentences of one shard."""
        num_sentences = self._shards.entries[shard].num_sentences
        if self.shuffle == "none":
            return np.arange(num_sentences)
        return np.random.default_rng((self.seed, epoch, shard)).permutation(num_sentences)
