"""Tests on scored examples: one system against another, several tests at once; spread over seeds.

The paired test is of two systems without seeds; for runs with several seeds see `bootstrap`. F1 is
resampled as a ratio of sums.
"""

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from elmokit.errors import InputError
from elmokit.metrics.accuracy import Counts

ScoreFunction = Callable[[Counts], Counts]  # from summed counts (..., k) to scores (...)

NUM_ROUNDS = 10_000  # of a test, by default
TOLERANCE = 1e-9
"""Score differences that count as equal, because the order of sums changes their rounding."""
_BLOCK_VALUES = 1 << 21


@dataclass(frozen=True, kw_only=True)
class PairedTest:
    """Outcome of a two-sided test of ``score(a) = score(b)``."""

    difference: float  # score of a minus score of b
    p_value: float
    """``(r + 1) / (R + 1)``: r of R rounds were at least as extreme as the observed one."""


@dataclass(frozen=True, kw_only=True)
class SeedSummary:
    """A score over several seeds."""

    mean: float
    sd: float | None  # sample standard deviation (divisor n - 1); None for a single seed
    num_seeds: int


def approximate_randomization(
    a: Counts, b: Counts, score: ScoreFunction, *, num_rounds: int = NUM_ROUNDS, seed: int
) -> PairedTest:
    """Swap the rows of the systems at random; count how often that gives such a difference.

    ``a`` and ``b`` are counts of the same examples, (examples, k), ``score`` is the function from
    their sums to a score, such as `f1_of`.
    """
    if a.ndim != 2 or a.shape != b.shape or len(a) == 0:
        raise InputError(
            f"`a` and `b` must have the same shape (examples, k) with at least one example, got "
            f"{a.shape} and {b.shape}. Score both systems on the same examples."
        )
    observed = float(score(a.sum(axis=0)) - score(b.sum(axis=0)))
    generator = np.random.default_rng(seed)
    both, total_a, extreme = (a + b).sum(axis=0), a.sum(axis=0), 0
    for size in blocks(num_rounds, len(a)):
        swapped = generator.integers(0, 2, size=(size, len(a))).astype(np.float64)
        totals = total_a + swapped @ (b - a)  # (rounds, k)
        rounds = np.abs(score(totals) - score(both - totals))
        extreme += int((rounds >= abs(observed) - TOLERANCE).sum())
    return PairedTest(difference=observed, p_value=(extreme + 1) / (num_rounds + 1))


def holm(p_values: Sequence[float], *, num_tests: int | None = None) -> list[float]:
    """Adjust the p-values of several tests for their number, in order (Holm 1979).

    ``num_tests`` counts tests whose value is still missing, too; it is taken to be 1.
    """
    left = max(len(p_values), num_tests or 0)
    adjusted, largest = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (left - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted


def summarize_seeds(scores: Sequence[float]) -> SeedSummary:
    """Return mean and sample standard deviation of at least one score."""
    is_finite = all(map(math.isfinite, scores))
    sd = None if len(scores) < 2 else statistics.stdev(scores) if is_finite else math.nan
    return SeedSummary(mean=statistics.fmean(scores), sd=sd, num_seeds=len(scores))


def blocks(num_rounds: int, num_draws: int) -> Iterator[int]:
    """Yield sizes that sum to ``num_rounds`` and bound memory, with ``num_draws`` in a round."""
    size = max(1, _BLOCK_VALUES // num_draws)
    for start in range(0, num_rounds, size):
        yield min(size, num_rounds - start)
