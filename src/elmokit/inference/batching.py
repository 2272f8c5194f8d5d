"""Grouping sentences: buffers of the input stream, batches of similar length within a buffer."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

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


def batch_by_length(
    lengths: Sequence[int], *, max_tokens: int, max_sentences: int | None = None
) -> Iterator[list[int]]:
    """Group sentences by descending length; yield indices into ``lengths``, each once.

    A batch has at most ``max_tokens`` positions and ``max_sentences`` sentences; a longer sentence
    is a batch by itself.
    """
    batch: list[int] = []
    num_tokens = 0
    for index in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        if batch and (num_tokens + lengths[index] > max_tokens or len(batch) == max_sentences):
            yield batch
            batch, num_tokens = [], 0
        batch.append(index)
        num_tokens += lengths[index]
    if batch:
        yield batch
