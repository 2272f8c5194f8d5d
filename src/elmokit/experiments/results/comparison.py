"""Comparison of two conditions: mean and spread over seeds, gain, error reduction, significance.

Differences are tested by a hierarchical bootstrap over seeds and sampling units, which are the
task's (paragraphs, documents, sentences): see `elmokit.metrics.bootstrap`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from elmokit.experiments.plan import PlannedRun
from elmokit.experiments.runs.store import RunResult
from elmokit.metrics.bootstrap import RunCounts, bootstrap_gain, sum_by_unit
from elmokit.metrics.significance import SeedSummary, holm, summarize_seeds
from elmokit.tasks.registry import find_task


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


Pair = tuple[Cell, Cell]
"""Condition and reference of one task, data set and share."""


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One condition against another, over all seeds of both, and a test of it."""

    task: str
    dataset: str
    share: float
    condition: str
    reference: str
    low: float | None
    """Lower end of the interval (`bootstrap.CONFIDENCE`), in points; none: it has no ends."""
    high: float | None
    p_value: float
    """Two-sided."""
    adjusted_p: float = 1.0
    """Adjusted for all tasks on the page with the same conditions and share (Holm)."""
    num_units: int
    """Sampling units of the scored examples."""


Tested = TypeVar("Tested", bound=Difference)


@dataclass(frozen=True, kw_only=True)
class Comparison(Difference):
    """The gain of a condition; the interval is of the gain."""

    seeds: tuple[int, ...]
    reference_seeds: tuple[int, ...]
    gain: float
    """Mean of the condition minus mean of the reference, in points."""
    error_reduction: float | None
    """Gain in percent of the reference's error (100 - score); none without error."""
    epochs_to_reference: float | None
    """First epoch in which the condition matches the reference's mean best score on the held-out
    part, averaged over seeds; none if a seed never does."""


@dataclass(frozen=True, kw_only=True)
class GainChange(Difference):
    """The gain with fewer labels against that with all; the interval is of the change."""

    gain: float
    """With this share, in points."""
    whole_gain: float
    """With all labels."""

    @property
    def change(self) -> float:
        """How much larger the gain with fewer labels is, in points."""
        return self.gain - self.whole_gain


def collect(runs: Sequence[tuple[PlannedRun, RunResult]]) -> list[Cell]:
    """Group finished runs into cells, in order of first appearance."""
    found: dict[tuple[str, str, float, str], dict[int, RunResult]] = {}
    for run, result in runs:
        found.setdefault((run.task, run.dataset, run.share, run.condition), {})[run.seed] = result
    return [Cell(*key, results) for key, results in found.items()]


def compare(cell: Cell, reference: Cell) -> Comparison:
    """Compare two conditions of one task, data set and share."""
    if cell.key[:3] != reference.key[:3]:
        raise ValueError(
            f"{cell.key[:3]} and {reference.key[:3]}: not of one task, data set and share."
        )
    base, mean = reference.summary.mean, cell.summary.mean
    return Comparison(
        seeds=tuple(sorted(cell.results)), reference_seeds=tuple(sorted(reference.results)),
        gain=mean - base, error_reduction=error_reduction(base, mean),
        epochs_to_reference=_epochs_to(cell, reference),
        **_test((cell, reference)),
    )  # fmt: skip


def compare_gains(pair: Pair, whole: Pair) -> GainChange:
    """Compare the gain of two cells, condition and reference, with that of two with all labels."""
    gain, whole_gain = (new.summary.mean - base.summary.mean for new, base in (pair, whole))
    return GainChange(gain=gain, whole_gain=whole_gain, **_test(pair, whole))


def adjust(differences: Sequence[Tested], num_tests: int) -> list[Tested]:
    """Return differences with p-values adjusted for the number of all planned tests."""
    adjusted = holm([one.p_value for one in differences], num_tests=num_tests)
    pairs = zip(differences, adjusted, strict=True)
    return [replace(one, adjusted_p=p_value) for one, p_value in pairs]


def _test(pair: Pair, minus: Pair | None = None) -> dict[str, Any]:
    """Return the fields of a `Difference`."""
    cell, reference = pair
    counts = _run_counts(pair)
    found = bootstrap_gain(
        counts, None if minus is None else _run_counts(minus),
        score=find_task(cell.task).score_from_counts, seed=0,
    )  # fmt: skip
    return {
        "task": cell.task, "dataset": cell.dataset, "share": cell.share,
        "condition": cell.condition, "reference": reference.condition,
        "low": found.low, "high": found.high, "p_value": found.p_value,
        "num_units": counts.new.shape[1],
    }  # fmt: skip


def _run_counts(pair: Pair) -> RunCounts:
    new, reference = map(_counts, pair)
    return RunCounts(new, reference)


def _counts(cell: Cell) -> np.ndarray:
    """Return the counts of all seeds: (seeds, units, k)."""
    sums = []
    for _, result in sorted(cell.results.items()):
        counts, units = result.counts, result.sampling_units
        sums.append(sum_by_unit(counts, units if len(units) else np.arange(len(counts))))
    return np.stack(sums)


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


def _epochs_to(cell: Cell, reference: Cell) -> float | None:
    if not all(result.epochs for result in reference.results.values()):
        return None
    target = np.mean([result.held_out for result in reference.results.values()])
    reached = []
    for result in cell.results.values():
        epochs = [one["epoch"] for one in result.epochs if one["held_out"] >= target]
        if not epochs:
            return None
        reached.append(min(epochs))
    return float(np.mean(reached))
