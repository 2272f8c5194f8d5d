"""Comparison of conditions: mean and spread over seeds, gain, error reduction, significance.

Differences are tested by a hierarchical bootstrap over seeds and sampling units, which are the
task's (paragraphs, documents, sentences): see `elmokit.metrics.bootstrap`.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from elmokit.experiments.definitions import ProbeSettings
from elmokit.experiments.runs import Outcome, PlannedRun, RunResult
from elmokit.metrics.bootstrap import RunCounts, SeedSummary, bootstrap_gain, holm, summarize_seeds
from elmokit.tasks.registry import TASKS, find_task

Row = tuple[str, str, float]
"""Task, data set, share of the labels."""


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
    def summary(self) -> SeedSummary:
        return summarize_seeds([result.value for result in self.results.values()])

    @property
    def first(self) -> RunResult:
        return next(iter(self.results.values()))

    @property
    def counts(self) -> np.ndarray:
        """Counts of all seeds, by sampling unit: (seeds, units, k)."""
        return np.stack([result.counts_by_unit for _, result in sorted(self.results.items())])


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One condition against another, over all seeds of both, and a test of it."""

    task: str
    dataset: str
    share: float
    condition: str
    reference: str
    gain: float
    low: float | None  # end of the interval of the gain or of its change; none: it has no ends
    high: float | None
    p_value: float
    adjusted_p: float = 1.0
    """Adjusted for all tasks on the page with the same conditions and share (Holm)."""
    num_units: int
    seeds: tuple[int, ...]
    reference_seeds: tuple[int, ...]
    error_reduction: float | None
    """Gain in percent of the reference's error (100 - score); none without error."""
    epochs_to_reference: float | None
    """First epoch that matches the reference's mean best held-out score, averaged over seeds; none
    if a seed never does."""
    whole_gain: float | None = None
    """The gain with all labels, if it is compared with the one with fewer."""
    change: float | None = None
    """How much larger the gain with fewer labels is, in points."""


@dataclass(frozen=True)
class Findings:
    """The planned runs of an experiment and their results so far."""

    runs: Sequence[tuple[PlannedRun, Outcome | None]]
    """In plan order; a run without a result may say why."""
    reference: str | None
    # the report is written after every run, and a test takes a second: tests by cells and seeds
    known: dict[object, Difference] = field(default_factory=dict)
    is_tuned: bool = False
    probe: ProbeSettings | None = None

    @cached_property
    def finished(self) -> list[tuple[PlannedRun, RunResult]]:
        return [(run, outcome) for run, outcome in self.runs if isinstance(outcome, RunResult)]

    @cached_property
    def conditions(self) -> list[str]:
        return list(dict.fromkeys(run.condition for run, _ in self.runs))

    @cached_property
    def num_planned(self) -> Counter[tuple[Row, str]]:
        return Counter(((run.task, run.dataset, run.share), run.condition) for run, _ in self.runs)

    @cached_property
    def rows(self) -> list[Row]:
        """Tasks in plan order, each with its shares from the largest on."""
        rows = dict.fromkeys(row for row, _ in self.num_planned)
        tasks = list(dict.fromkeys(row[:2] for row in rows))
        return sorted(rows, key=lambda row: (tasks.index(row[:2]), -row[2]))

    @cached_property
    def cells(self) -> dict[tuple[str, str, float, str], Cell]:
        results: dict[tuple[str, str, float, str], dict[int, RunResult]] = {}
        for run, result in self.finished:
            key = run.task, run.dataset, run.share, run.condition
            results.setdefault(key, {})[run.seed] = result
        return {key: Cell(*key, by_seed) for key, by_seed in results.items()}

    @cached_property
    def comparisons(self) -> list[Difference]:
        """Every condition against the reference, where both have a result."""
        return self._adjusted([self._once(*pair) for row in self.rows for pair in self._pairs(row)])

    @cached_property
    def gain_changes(self) -> list[Difference]:
        """The gains with fewer labels against those with all of them."""
        changes = []
        for task, dataset, share in self.rows:
            wholes = {pair[0].condition: pair for pair in self._pairs((task, dataset, 1.0))}
            for pair in self._pairs((task, dataset, share)) if share != 1 else ():
                if whole := wholes.get(pair[0].condition):
                    changes.append(self._once(*pair, *whole))
        return self._adjusted(changes)

    @cached_property
    def ended_at_their_best(self) -> list[PlannedRun]:
        return [run for run, result in self.finished if result.ended_at_its_best]

    def curve(self, task: str, dataset: str, condition: str) -> list[Cell]:
        shares = sorted({share for *_, share in self.rows})
        cells = [self.cells.get((task, dataset, share, condition)) for share in shares]
        return [cell for cell in cells if cell is not None]

    def _pairs(self, row: Row) -> list[tuple[Cell, Cell]]:
        base = self.cells.get((*row, self.reference or ""))
        if base is None or base.task not in TASKS:
            return []
        cells = [self.cells.get((*row, name)) for name in self.conditions if name != self.reference]
        return [(cell, base) for cell in cells if cell is not None]

    def _once(self, *cells: Cell) -> Difference:
        key = tuple((c.task, c.dataset, c.share, c.condition, *c.results) for c in cells)
        if key not in self.known:
            self.known[key] = compare(*cells)
        return self.known[key]

    def _adjusted(self, differences: Sequence[Difference]) -> list[Difference]:
        """Adjust p-values for the tasks that are planned with the same condition and share."""
        families: dict[tuple[str, float], list[int]] = {}
        for number, difference in enumerate(differences):
            families.setdefault((difference.condition, difference.share), []).append(number)
        adjusted = list(differences)
        for (condition, share), members in families.items():
            # runs that are still missing count as tests, or p would rise while they come in
            planned = [
                row for row, name in self.num_planned if (name, row[2]) == (condition, share)
            ]
            p_values = holm([differences[n].p_value for n in members], num_tests=len(planned))
            for number, p_value in zip(members, p_values, strict=True):
                adjusted[number] = replace(differences[number], adjusted_p=p_value)
        return adjusted


def compare(
    cell: Cell, reference: Cell, whole: Cell | None = None, whole_reference: Cell | None = None
) -> Difference:
    """Compare two conditions; given two cells with all labels, the gain with theirs."""
    base, mean = reference.summary.mean, cell.summary.mean
    gain, minus = RunCounts(cell.counts, reference.counts), None
    changes: dict[str, float] = {}
    if whole is not None and whole_reference is not None:
        minus = RunCounts(whole.counts, whole_reference.counts)
        whole_gain = whole.summary.mean - whole_reference.summary.mean
        changes = {"whole_gain": whole_gain, "change": mean - base - whole_gain}
    test = bootstrap_gain(gain, minus, score=find_task(cell.task).score_from_counts, seed=0)
    return Difference(
        task=cell.task, dataset=cell.dataset, share=cell.share, condition=cell.condition,
        reference=reference.condition, gain=mean - base,
        low=test.low, high=test.high, p_value=test.p_value, num_units=gain.new.shape[1],
        seeds=tuple(sorted(cell.results)), reference_seeds=tuple(sorted(reference.results)),
        error_reduction=error_reduction(base, mean),
        epochs_to_reference=_epochs_to(cell, reference), **changes,
    )  # fmt: skip


def error_reduction(base: float, new: float) -> float | None:
    return None if base >= 100 else 100 * (new - base) / (100 - base)


def share_that_reaches(points: Sequence[tuple[float, float]], target: float) -> float | None:
    """Return the smallest share of labels at which a learning curve reaches a score, if any.

    Interpolates linearly between the points (share, score), on a logarithmic axis of shares.
    """
    shares, scores = (np.array(column) for column in zip(*sorted(points), strict=True))
    reached = np.flatnonzero(scores >= target)
    if not len(reached):
        return None
    part = slice(max(0, reached[0] - 1), reached[0] + 1)
    return float(np.exp(np.interp(target, scores[part], np.log(shares[part]))))


def _epochs_to(cell: Cell, reference: Cell) -> float | None:
    if not all(result.epochs for result in reference.results.values()):
        return None
    target = np.mean([result.held_out for result in reference.results.values()])
    reached = [
        min((row["epoch"] for row in result.epochs if row["held_out"] >= target), default=None)
        for result in cell.results.values()
    ]
    return None if None in reached else float(np.mean(reached))  # pyright: ignore
