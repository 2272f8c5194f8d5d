"""Comparison of two conditions over seeds: mean, spread, gain, error reduction, significance.

The paired test sums the counts of each dev example over the seeds that both conditions have and
swaps the conditions example by example (approximate randomization). The unit is the example, so
more seeds do not make a small dev set look large.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from elmokit.experiments.plan import PlannedRun
from elmokit.experiments.runs.store import RunResult
from elmokit.metrics.significance import SeedSummary, approximate_randomization, summarize_seeds
from elmokit.tasks.registry import find_task

NUM_ROUNDS = 10_000


@dataclass(frozen=True)
class Cell:
    """The finished seeds of one condition on one task, data set and share."""

    task: str
    dataset: str
    share: float
    condition: str
    results: Mapping[int, RunResult]
    """Results by seed; at least one."""

    @property
    def key(self) -> tuple[str, str, float, str]:
        """Task, data set, share, condition."""
        return self.task, self.dataset, self.share, self.condition

    @property
    def summary(self) -> SeedSummary:
        """Mean and sample standard deviation of the main score."""
        return summarize_seeds([result.value for result in self.results.values()])

    @property
    def num_examples(self) -> int:
        """Number of training examples."""
        return next(iter(self.results.values())).num_examples

    @property
    def metric(self) -> str:
        """Name of the main score."""
        return next(iter(self.results.values())).metric


@dataclass(frozen=True)
class Comparison:
    """One condition against another, over the seeds that both have."""

    task: str
    dataset: str
    share: float
    condition: str
    reference: str
    seeds: tuple[int, ...]
    gain: float
    """Mean of the condition minus mean of the reference, in points."""
    gain_sd: float | None
    """Standard deviation of the gain over the seeds; none for one seed."""
    error_reduction: float | None
    """Gain in percent of the reference's error (100 - score); none without error."""
    p_value: float
    """Two-sided."""
    epochs_to_reference: float | None
    """First epoch in which the condition matches the reference's best score, averaged over seeds;
    none if a seed never does."""


def collect(runs: Sequence[tuple[PlannedRun, RunResult]]) -> list[Cell]:
    """Group finished runs into cells, in order of first appearance."""
    found: dict[tuple[str, str, float, str], dict[int, RunResult]] = {}
    for run, result in runs:
        found.setdefault((run.task, run.dataset, run.share, run.condition), {})[run.seed] = result
    return [Cell(*key, results) for key, results in found.items()]


def compare(cell: Cell, reference: Cell) -> Comparison | None:
    """Compare two conditions of one task, data set and share; none if they have no common seed."""
    if cell.key[:3] != reference.key[:3]:
        raise ValueError(
            f"{cell.key[:3]} and {reference.key[:3]}: not of one task, data set and share."
        )
    seeds = tuple(sorted(cell.results.keys() & reference.results.keys()))
    if not seeds:
        return None
    ours, theirs = ([side.results[seed] for seed in seeds] for side in (cell, reference))
    gains = summarize_seeds([a.value - b.value for a, b in zip(ours, theirs, strict=True)])
    base = summarize_seeds([result.value for result in theirs]).mean
    score = find_task(cell.task).score_from_counts
    counts = _pool(ours), _pool(theirs)
    test = approximate_randomization(*counts, score, num_rounds=NUM_ROUNDS, seed=0)
    return Comparison(
        *cell.key, reference=reference.condition, seeds=seeds, gain=gains.mean, gain_sd=gains.sd,
        error_reduction=error_reduction(base, base + gains.mean), p_value=test.p_value,
        epochs_to_reference=_epochs_to(ours, theirs),
    )  # fmt: skip


def error_reduction(base: float, new: float) -> float | None:
    """Return the reduction of ``100 - score`` in percent; none if ``base`` is 100."""
    return None if base >= 100 else 100 * (new - base) / (100 - base)


def share_that_reaches(points: Sequence[tuple[float, float]], target: float) -> float | None:
    """Return the smallest share of labels at which a learning curve reaches a score.

    Interpolates linearly between the points (share, score), on a logarithmic axis of shares; none
    if no point reaches the score.
    """
    ordered = sorted(points)
    for number, (share, score) in enumerate(ordered):
        if score < target:
            continue
        if number == 0:
            return share
        before, lower = ordered[number - 1]
        part = (target - lower) / (score - lower)
        return float(before * (share / before) ** part)
    return None


def _pool(results: Sequence[RunResult]) -> np.ndarray:
    return np.stack([result.counts for result in results]).sum(axis=0)


def _epochs_to(ours: Sequence[RunResult], theirs: Sequence[RunResult]) -> float | None:
    reached = []
    for own, other in zip(ours, theirs, strict=True):
        epochs = [one["epoch"] for one in own.epochs if one["dev"] >= other.value]
        if not epochs:
            return None
        reached.append(min(epochs))
    return float(np.mean(reached))
