"""The order in which an epoch takes shards and sentences: a function of seed and epoch."""

from typing import Literal

import numpy as np

from elmokit.corpus.shards import ShardSet

Shuffle = Literal["sentences", "none"]
"""``sentences`` draws the order of groups of shards, and of the sentences within each, anew each
epoch; ``none`` keeps all as it was written."""
SHARDS_TOGETHER = 8
"""Most shards whose sentences are shuffled together. A shard is a stretch of the text: one at a
time, a model learns a novel by heart and forgets the encyclopedia."""


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
        together = 1 if shuffle == "none" else SHARDS_TOGETHER
        self.num_groups = -(-len(shards) // together)

    def groups(self, epoch: int) -> list[tuple[int, ...]]:
        """Return the groups of shards that an epoch takes, in their order, of like size.

        A group is every ``num_groups``-th shard, so all read the same mixture of texts: of a text
        that is a stretch of the corpus no group has more than one shard more than another.
        """
        num_shards = len(self._shards)
        firsts = np.arange(self.num_groups)
        if self.shuffle != "none":
            # the third number sets it apart from the sentence orders, where it is below num_shards
            rng = np.random.default_rng((self.seed, epoch, num_shards))
            firsts = rng.permutation(self.num_groups)
        return [tuple(range(first, num_shards, self.num_groups)) for first in firsts.tolist()]

    def sentences(self, epoch: int, group: int) -> np.ndarray:
        """Return the order in which an epoch takes the sentences of its ``group``-th group.

        Sentences are counted through its shards.
        """
        shards = self.groups(epoch)[group]
        num_sentences = sum(self._shards.entries[shard].num_sentences for shard in shards)
        if self.shuffle == "none":
            return np.arange(num_sentences)
        return np.random.default_rng((self.seed, epoch, group)).permutation(num_sentences)
