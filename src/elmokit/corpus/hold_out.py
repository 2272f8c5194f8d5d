"""Holding out validation sentences from a streamed corpus."""

import heapq
import random
from collections.abc import Generator, Iterable
from itertools import islice
from operator import itemgetter

_BLOCK_SENTENCES = 5


def hold_out(
    sentences: Iterable[list[str]],
    *,
    max_sentences: int,
    max_words: int,
    share: float = 0.02,
) -> Generator[list[str], None, list[list[str]]]:
    """Yield the training sentences, and return a small part that is spread evenly over the corpus.

    Each block of neighboring sentences draws a random number; the blocks with the smallest numbers
    are held out, up to the limits: at least one block of two, at most ``max_sentences`` (rounded up
    to a block) and ``max_words``. Blocks that others displace are trained on after all, late and
    out of corpus order. The same corpus gives the same split.
    """
    held: list[tuple[float, int, list[list[str]]]] = []  # heap: largest number first
    num_words, index = 0, -1
    draw, iterator = random.Random(0).random, iter(sentences)
    # The blocks with the smallest random numbers are a uniform sample whatever the length of the
    # corpus, which is not known before its end.
    for index, block in enumerate(iter(lambda: list(islice(iterator, _BLOCK_SENTENCES)), [])):
        number = draw()
        if held and number >= max(share, -held[0][0]):
            yield from block
            continue
        heapq.heappush(held, (-number, index, block))
        num_words += sum(map(len, block))
        while len(held) > 1 and (
            -held[0][0] >= share
            or (len(held) - 1) * _BLOCK_SENTENCES >= max_sentences
            or num_words > max_words
        ):
            _, _, displaced = heapq.heappop(held)
            num_words -= sum(map(len, displaced))
            yield from displaced
    if index == 0:  # nothing would be left to train on
        yield from held.pop()[2]
    return [sentence for _, _, block in sorted(held, key=itemgetter(1)) for sentence in block]
