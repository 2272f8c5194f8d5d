"""Holding out validation sentences from a streamed corpus."""

import heapq
import random
from collections.abc import Iterable, Iterator
from itertools import islice


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
