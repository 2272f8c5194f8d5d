"""Taking a few sentences aside for validation while a corpus streams by."""

import heapq
import random
from collections.abc import Iterable, Iterator
from itertools import islice


class HoldOut:
    """Hold out a small part of a corpus of unknown length, spread evenly over all of it.

    Blocks of neighboring sentences are held, so that validation text is running text. Each block
    draws a number from the seed; those with the smallest numbers are held, and a block that must
    make room goes back to the training sentences. So memory is bounded by the limits, every
    sentence is either held or yielded exactly once, and the same corpus gives the same split.

    Args:
        share: share of the corpus to hold out. At least one block is held if there are two.
        max_sentences: at most so many (rounded up to a block).
        max_words: at most so many words, if that is more than one block.
        block_sentences: sentences of a block.
        seed: decides which blocks.
    """

    def __init__(
        self,
        *,
        share: float = 0.01,
        max_sentences: int = 2000,
        max_words: int = 100_000,
        block_sentences: int = 5,
        seed: int = 0,
    ) -> None:
        if not 0 < share < 1:
            raise ValueError(f"`share` must be above 0 and below 1, got {share}.")
        if max_sentences < 1 or max_words < 1 or block_sentences < 1:
            raise ValueError(
                f"`max_sentences`, `max_words` and `block_sentences` must be at least 1, got "
                f"{max_sentences}, {max_words} and {block_sentences}."
            )
        self.share = share
        self.max_sentences = max_sentences
        self.max_words = max_words
        self.block_sentences = block_sentences
        self.seed = seed
        self._held: list[tuple[float, int, list[list[str]]]] = []  # heap: largest number first
        self._num_words = 0

    @property
    def sentences(self) -> list[list[str]]:
        """What is held out, in corpus order; final once `split` is exhausted."""
        return [
            sentence
            for _, _, block in sorted(self._held, key=lambda entry: entry[1])
            for sentence in block
        ]

    def split(self, sentences: Iterable[list[str]]) -> Iterator[list[str]]:
        """Yield the training sentences; the others stay in `sentences`.

        A block that was held for a while is yielded late, so the order is not quite the corpus'.
        """
        self._held.clear()
        self._num_words = 0
        draw = random.Random(self.seed).random
        iterator = iter(sentences)
        index = 0
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
        if index == 1:  # a single block: nothing would be left to train on
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
