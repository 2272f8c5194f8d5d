"""Holding out validation sentences from a streamed corpus; how much of a text repeats itself."""

import heapq
import random
from collections.abc import Generator, Iterable, Iterator
from itertools import islice
from operator import itemgetter

import numpy as np

from elmokit.corpus.shards import Shard, ShardSet

MAX_SENTENCES, MAX_VALID_SENTENCES = 500_000, 20_000
"""About so many are compared of larger texts."""
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


def repeated_shares(shards: ShardSet, valid: ShardSet | None) -> tuple[float, float]:
    """Return the shares of a corpus that repeats itself, and of validation text that is in it.

    Both are counted in words of equal sentences. 16 bytes are kept for each compared sentence.
    """
    parts = [np.zeros((2, 0), np.uint64)]
    if valid is not None:
        hashed_shards = map(_hashed, _loaded(valid))
        parts += [_sample(hashed, valid, MAX_VALID_SENTENCES) for hashed in hashed_shards]
    valid_hashes, valid_words = np.concatenate(parts, axis=1)
    is_shared = np.zeros(len(valid_hashes), dtype=bool)
    samples = []
    for hashed in map(_hashed, _loaded(shards)):
        is_shared |= np.isin(valid_hashes, hashed[0])
        samples.append(_sample(hashed, shards, MAX_SENTENCES))
    hashes, num_words = np.concatenate(samples, axis=1)
    new = num_words[np.unique(hashes, return_index=True)[1]]
    repeated = 1 - int(new.sum()) / int(num_words.sum()) if num_words.any() else 0.0
    shared = int(valid_words[is_shared].sum()) / int(valid_words.sum()) if len(valid_words) else 0.0
    return repeated, shared


def _loaded(shards: ShardSet) -> Iterator[Shard]:
    return map(shards.load, range(len(shards)))


def _sample(hashed: np.ndarray, shards: ShardSet, max_sentences: int) -> np.ndarray:
    # by hash, so that all copies of a sentence are in the sample or none
    every = np.uint64(1 + shards.num_sentences // max_sentences)
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
