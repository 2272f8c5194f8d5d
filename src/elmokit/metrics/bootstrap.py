"""Confidence interval of the difference between two systems on the same units."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from elmokit.errors import InputError
from elmokit.metrics.significance import Counts, ScoreFunction

LEVEL = 0.95
"""Of the interval."""
_BLOCK_VALUES = 1 << 21


@dataclass(frozen=True, kw_only=True)
class DifferenceInterval:
    """A difference of scores, and its percentile interval."""

    difference: float
    """Score of a minus score of b."""
    low: float
    high: float
    num_units: int
    """Rows that were drawn from: sentences or documents."""


def bootstrap_difference(
    a: Counts, b: Counts, score: ScoreFunction, *, num_rounds: int = 10_000, seed: int
) -> DifferenceInterval:
    """Draw units with replacement, the same for both systems, and score what was drawn.

    Source: Efron and Tibshirani 1993, chapter 13.

    Raises:
        InputError: if the counts differ in shape (units, k) or are empty, or there is no round.
    """
    if a.ndim != 2 or a.shape != b.shape or len(a) == 0:
        raise InputError(
            f"`a` and `b` must have the same shape (units, k) with at least one unit, got "
            f"{a.shape} and {b.shape}. Score both systems on the same units."
        )
    if num_rounds < 1:
        raise InputError(f"`num_rounds` must be at least 1, got {num_rounds}. Usual: 10000.")
    generator = np.random.default_rng(seed)
    shares = np.full(len(a), 1 / len(a))
    rounds = []
    for size in _blocks(num_rounds, len(a)):
        drawn = generator.multinomial(len(a), shares, size=size).astype(np.float64)
        rounds.append(score(drawn @ a) - score(drawn @ b))
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(np.concatenate(rounds), [tail, 1 - tail])
    return DifferenceInterval(
        difference=float(score(a.sum(axis=0)) - score(b.sum(axis=0))),
        low=float(low), high=float(high), num_units=len(a),
    )  # fmt: skip


def _blocks(num_rounds: int, num_units: int) -> Iterator[int]:
    """Yield block sizes that sum to ``num_rounds`` and bound memory."""
    size = max(1, _BLOCK_VALUES // num_units)
    for start in range(0, num_rounds, size):
        yield min(size, num_rounds - start)
