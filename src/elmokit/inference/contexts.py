"""Sequences with common beginnings, read once for each distinct beginning.

The two sentences of a minimal pair, or the variants of an example, share most of their words. What
a direction expects depends on what it has read alone, so each distinct context needs one LSTM step
and one softmax. The sequences become a tree, cut into segments without branches; segments with the
same number of branches before them are read together, from the states after their parents.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from elmokit.bilm.config import Direction
from elmokit.inference.engine import Engine
from elmokit.inference.state import DirectionState
from elmokit.shapes import Float, Int, Integer

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

    tokens = [segment.tokens[:: 1 if is_forward else -1] for segment in segments]
    return engine.read(direction, vectors, tokens, state, on_top=report)
