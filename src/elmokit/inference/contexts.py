"""Batches of like length, and sequences with common beginnings, each beginning read once.

The two sentences of a minimal pair, or the variants of an example, share most of their words. What
a direction expects depends on what it has read alone, so each distinct context needs one LSTM step
and one softmax. The sequences become a tree, cut into segments without branches; segments with the
same number of branches before them are read together, from the states after their parents.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np

from elmokit.bilm.config import Direction
from elmokit.inference.engine import Engine
from elmokit.inference.layers_and_states import DirectionState
from elmokit.shapes import Float, Int, Integer
from elmokit.text.char_vocab import SENTENCE_BEGIN_WORD, SENTENCE_END_WORD

Sentence = TypeVar("Sentence", bound=Sequence[Any])
NUM_BOUNDARIES = 2
"""Positions that ``<S>`` and ``</S>`` add to a sentence."""
OnContexts = Callable[[np.ndarray, np.ndarray], None]
"""(outputs (P, D), the number of the context of each (P,))."""


class _Segment(NamedTuple):
    tokens: np.ndarray
    parent: int
    """Index of the segment before it in the previous round; 0 in the first."""
    first: int
    """Number of the context that ends with the first token; those of the others follow it."""


@dataclass(frozen=True)
class Contexts:
    """The distinct beginnings of some sequences, numbered from 0."""

    numbers: Int[np.ndarray, " P"]
    """The context that ends at each token, for all tokens of the sequences on end."""
    rounds: list[list[_Segment]]
    """Segments that start from the states after those of the round before."""


def find_contexts(sequences: Sequence[Integer[np.ndarray, " _"]]) -> Contexts:
    """Number the distinct beginnings of sequences, which are in lexicographic order."""
    lengths = np.array([len(sequence) for sequence in sequences])
    places = np.arange(lengths.max(initial=0))
    is_token = places < lengths[:, None]  # (S, W)
    table = np.full((len(lengths), len(places)), -1)
    table[is_token] = np.concatenate(sequences)
    # how many tokens a sequence shares with the one before; the others begin new contexts
    is_shared = (table[1:] == table[:-1]) & is_token[1:]
    shared = np.array([0, *np.logical_and.accumulate(is_shared, axis=1).sum(axis=1)])
    # number of the first new context of each sequence: the new ones of those before it
    firsts = np.cumsum(lengths - shared) - (lengths - shared)
    # the sequence that is the first to begin with a context
    is_new = places >= shared[:, None]
    owners = np.maximum.accumulate(np.where(is_new, np.arange(len(table))[:, None], 0), axis=0)
    # within its owner, new contexts are numbered on from place ``shared``
    numbers = (firsts - shared)[owners] + places
    rounds = _find_segments(sequences, shared.tolist(), owners, firsts.tolist())
    return Contexts(numbers[is_token], rounds)


def _find_segments(
    sequences: Sequence[np.ndarray], shared: list[int], owners: np.ndarray, firsts: list[int]
) -> list[list[_Segment]]:
    """Cut the new part of each sequence where others leave it, and order the parts by rounds."""
    leaves = [
        (int(owners[number, start - 1]) if start else -1, start)
        for number, start in enumerate(shared)
    ]
    # where others leave a sequence, a segment must end, so that there is a state to start from
    ends: dict[int, set[int]] = {}
    for owner, start in leaves:
        ends.setdefault(owner, set()).add(start)
    rounds: list[list[_Segment]] = []
    # (sequence, end of a segment) -> the round that goes on from there, and the segment's index
    places = {(-1, 0): (0, 0)}
    for number, sequence in enumerate(sequences):
        start = shared[number]
        if start == len(sequence):
            continue
        depth, parent = places[leaves[number]]
        for end in sorted({*ends.get(number, ()), len(sequence)}):
            rounds += [[]] if depth == len(rounds) else []
            first = firsts[number] + start - shared[number]
            rounds[depth].append(_Segment(sequence[start:end], parent, first))
            start, depth, parent = end, depth + 1, len(rounds[depth]) - 1
            places[number, end] = depth, parent
    return rounds


def read_contexts(
    engine: Engine,
    direction: Direction,
    vectors: Float[np.ndarray, "U D"],
    contexts: Contexts,
    start: DirectionState,
    on_top: OnContexts,
) -> None:
    """Read every context once, starting from ``start``: (hidden (N, 1, D), cell (N, 1, H)).

    ``on_top`` is called with the outputs of the last layer, some contexts at a time.
    """
    state, place = start, [0]
    for segments in contexts.rounds:
        # the order in which the engine reads: states of thousands of rows are copied only once
        order = np.argsort([-len(segment.tokens) for segment in segments], kind="stable")
        segments = [segments[i] for i in order]
        parents = [place[segment.parent] for segment in segments]
        place = np.argsort(order).tolist()
        state = state[0][:, parents], state[1][:, parents]
        state = _read_round(engine, direction, vectors, segments, state, on_top)


def _read_round(
    engine: Engine,
    direction: Direction,
    vectors: np.ndarray,
    segments: Sequence[_Segment],
    state: DirectionState,
    on_top: OnContexts,
) -> DirectionState:
    firsts = np.array([segment.first for segment in segments])
    lengths = np.array([len(segment.tokens) for segment in segments])
    is_forward = direction == "forward"

    def report(outputs: np.ndarray, sentence: np.ndarray, position: np.ndarray) -> None:
        step = position if is_forward else lengths[sentence] - 1 - position
        on_top(outputs, firsts[sentence] + step)

    # the engine reads sentences from their end in that direction, contexts from their beginning
    tokens = [segment.tokens[:: 1 if is_forward else -1] for segment in segments]
    return engine.read(direction, vectors, tokens, state, on_top=report)


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
