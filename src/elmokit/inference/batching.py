"""Grouping what is computed together: buffers of a stream, batches of like length, distinct words.

The token layer ignores the context, so it needs each distinct word only once.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from elmokit.shapes import Integer
from elmokit.text.char_vocab import SENTENCE_BEGIN_WORD, SENTENCE_END_WORD

Sentence = TypeVar("Sentence", bound=Sequence[Any])

NUM_BOUNDARIES = 2
"""Positions that ``<S>`` and ``</S>`` add to a sentence."""


def fill_buffers(sentences: Iterable[Sentence], *, max_tokens: int) -> Iterator[list[Sentence]]:
    """Cut a stream into lists that end once they have ``max_tokens`` positions with boundaries."""
    buffer: list[Sentence] = []
    num_tokens = 0
    for sentence in sentences:
        buffer.append(sentence)
        num_tokens += len(sentence) + NUM_BOUNDARIES
        if num_tokens >= max_tokens:
            yield buffer
            buffer, num_tokens = [], 0
    if buffer:
        yield buffer


def batch_by_length(lengths: Sequence[int], *, max_tokens: int) -> Iterator[list[int]]:
    """Group sentences by descending length; yield indices into ``lengths``, each once."""
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    return cut_batches(order, lengths, max_tokens=max_tokens)


def cut_batches(
    order: Iterable[int],
    lengths: Sequence[int],
    *,
    max_tokens: int,
    max_sentences: int | None = None,
) -> Iterator[list[int]]:
    """Cut an order of sentences into batches.

    A batch has at most ``max_tokens`` positions and ``max_sentences`` sentences; a longer sentence
    is a batch by itself.
    """
    batch: list[int] = []
    num_tokens = 0
    for index in order:
        if batch and (num_tokens + lengths[index] > max_tokens or len(batch) == max_sentences):
            yield batch
            batch, num_tokens = [], 0
        batch.append(index)
        num_tokens += lengths[index]
    if batch:
        yield batch


@dataclass(frozen=True)
class DistinctTokens:
    """The distinct words of some sentences, and the sentences as indices into them."""

    words: list[str]
    """U words, the first two ``<S>`` and ``</S>``."""
    sentences: list[Integer[np.ndarray, " _"]]
    """For each sentence the indices of ``<S>``, its words, ``</S>``."""


def find_distinct_tokens(sentences: Sequence[Sequence[str]]) -> DistinctTokens:
    """Number the distinct words of ``sentences``, given without boundaries."""
    rows: dict[str, int] = {SENTENCE_BEGIN_WORD: 0, SENTENCE_END_WORD: 1}
    indices = []
    for sentence in sentences:
        index = [rows.setdefault(word, len(rows)) for word in sentence]
        indices.append(np.array([0, *index, 1], dtype=np.int64))
    return DistinctTokens(list(rows), indices)
