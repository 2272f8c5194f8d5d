"""Significance: hierarchical bootstrap of a gain, approximate randomization, Holm.

A gain is the mean score of some runs minus that of others, all scored on the same examples. Chance
enters twice: with the units that the examples come from (paragraphs, documents, sentences), and
with the seeds. A round draws both:

- *Units* are drawn with replacement, the same for all runs, and every run is scored on them.
- *Seeds* are two to five, too few to be drawn with replacement: their variance would come out a
  fifth to a half too small, and as if it were known. So the error of a mean over seeds is drawn
  from a normal distribution whose variance is drawn first, from what the variance of the runs says
  of it. The part that the units have in the variance of the runs is subtracted, because the
  first draw has it already.

Deviations of the first draw are widened from a normal to a t distribution, which matters for ten
documents and not for a thousand sentences. Without variance over units the interval is that of
Student's t test; with one seed a condition, it covers the units alone, and with one unit the seeds
alone. Where nothing varies, because there is one unit, or all of them agree, the interval has no
ends, and p is that of a sign test over the units (1 with one unit).
"""

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from elmokit.errors import InputError
from elmokit.metrics.task_scores import Counts

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


CONFIDENCE = 0.95  # of the intervals


@dataclass(frozen=True)
class RunCounts:
    """Counts of the runs of two conditions: (seeds, units, k), with the same units."""

    new: Counts
    reference: Counts
    new_is_fixed: bool = False
    """Whether ``new`` is one given model, no draw of seeds: only the reference has their error."""


@dataclass(frozen=True, kw_only=True)
class BootstrapTest:
    """Outcome of a two-sided test of "there is no difference"."""

    difference: float
    low: float | None
    """Lower end of the interval with `CONFIDENCE`; none: nothing varies over units and seeds."""
    high: float | None
    p_value: float
    """``2 (r + 1) / (R + 1)``: r of R rounds were not on the observed side of 0; at most 1."""


def bootstrap_gain(
    gain: RunCounts,
    minus: RunCounts | None = None,
    *,
    score: ScoreFunction,
    num_rounds: int = NUM_ROUNDS,
    seed: int,
) -> BootstrapTest:
    """Test whether a gain differs from 0, or from another gain on the same units (``minus``).

    The conditions may have different numbers of seeds, which are not paired, and each has a
    variance over seeds of its own.
    """
    gains = [gain] if minus is None else [gain, minus]
    num_units = gain.new.shape[1]
    generator = np.random.default_rng(seed)
    conditions = [counts for runs in gains for counts in (runs.new, runs.reference)]
    observed = [score(counts.sum(axis=1)) for counts in conditions]  # (seeds,) each
    resampled = _resample_units(conditions, num_units, score, num_rounds, generator)
    difference = _contrast([scores.mean() for scores in observed])
    errors = _contrast([scores.mean(axis=1) for scores in resampled]) - difference
    # A normal distribution over its own estimated width is Student's t.
    if num_units > 1:
        errors = errors * np.sqrt(num_units / generator.chisquare(num_units - 1, size=num_rounds))
    for number, runs in enumerate(gains):
        pair = slice(2 * number, 2 * number + 2)
        errors = errors + _seed_errors(
            observed[pair], resampled[pair], num_units, generator, new_is_fixed=runs.new_is_fixed
        )
    values = difference + errors
    against = min((values <= TOLERANCE).sum(), (values >= -TOLERANCE).sum())
    p = min(1.0, 2 * (int(against) + 1) / (num_rounds + 1))
    low, high = np.quantile(values, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]).tolist()
    if np.abs(errors).max() <= TOLERANCE:  # all units and seeds are equal: as a test of signs
        low, high, p = None, None, max(p, 2.0 ** (1 - num_units))
    return BootstrapTest(difference=float(difference), low=low, high=high, p_value=p)


def _contrast(values: Sequence[Any]) -> Counts:
    """Return new minus reference; of two gains, the first minus the second."""
    return np.tensordot(np.array([1.0, -1.0, -1.0, 1.0][: len(values)]), np.stack(values), axes=1)


def _resample_units(
    conditions: list[Counts], num_units: int, score: ScoreFunction, num_rounds: int,
    generator: np.random.Generator,
) -> list[Counts]:  # fmt: skip
    """Return the scores of all runs on drawn units: (rounds, seeds) for each condition."""
    flat = [counts.transpose(1, 0, 2).reshape(num_units, -1) for counts in conditions]
    scores: list[list[Counts]] = [[] for _ in conditions]
    for drawn in _draws(num_units, num_rounds, generator):
        for number, counts in enumerate(conditions):
            totals = drawn @ flat[number]
            scores[number].append(score(totals.reshape(len(drawn), len(counts), -1)))
    return [np.concatenate(parts) for parts in scores]


def _draws(num_units: int, num_rounds: int, generator: np.random.Generator) -> Iterator[Counts]:
    """Yield how often each unit was drawn: (rounds, units), in blocks that bound memory."""
    for rounds in blocks(num_rounds, num_units):
        drawn = generator.integers(0, num_units, size=(rounds, num_units))
        drawn += num_units * np.arange(rounds)[:, None]  # a range of numbers for each round
        times = np.bincount(drawn.ravel(), minlength=rounds * num_units)
        yield times.reshape(rounds, num_units).astype(np.float64)


def _seed_errors(
    observed: list[Counts], resampled: list[Counts], num_units: int,
    generator: np.random.Generator, *, new_is_fixed: bool,
) -> Counts:  # fmt: skip
    """Draw the error that the seeds of two conditions add to the difference of their means."""
    # Each condition has a variance of its own, and their sum the degrees of freedom of Welch and
    # Satterthwaite; a condition with one seed takes the variance of the other.
    counts = np.array([len(scores) for scores in observed])
    known = counts > 1
    if not known.any():  # one seed each: its variance is unknown
        return np.zeros(len(resampled[0]))
    variances, of_units = np.zeros(2), np.zeros(2)
    for number in np.flatnonzero(known):
        variances[number] = observed[number].var(ddof=1)
        deviations = resampled[number] - resampled[number].mean(axis=1, keepdims=True)
        of_units[number] = deviations.var(axis=0).sum() / (counts[number] - 1)
    # resampling n units shows (n - 1) / n of their variance
    of_units *= num_units / max(1, num_units - 1)
    for values in (variances, of_units):
        values[~known] = values[known].sum()  # of the other condition
    parts, freedoms = variances * [not new_is_fixed, True] / counts, counts - 1
    total = parts.sum()
    if total == 0:
        return np.zeros(len(resampled[0]))
    if not known.all():  # one estimate for both
        parts, freedoms = np.array([total]), freedoms[known]
    # Satterthwaite's squares find a difference too often where a condition has two seeds (10 %)
    power = 1 if counts[known].min() == 2 else 2
    freedom = total**power / (parts**power / freedoms).sum()
    # few runs know the variance only roughly, so it is drawn, too; the share of the units, which
    # the resampling has already added, is taken off
    totals = total * freedom / generator.chisquare(freedom, size=len(resampled[0]))
    of_means = np.maximum(0.0, totals - (of_units * [not new_is_fixed, True] / counts).sum())
    return generator.standard_normal(len(of_means)) * np.sqrt(of_means)
