"""The results of an experiment so far, in plan order."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

from elmokit.experiments.plan import PlannedRun
from elmokit.experiments.results.comparison import (
    Cell,
    Comparison,
    GainChange,
    Pair,
    Tested,
    adjust,
    collect,
    compare,
    compare_gains,
)
from elmokit.experiments.runs.store import RunResult
from elmokit.tasks.registry import TASKS

Row = tuple[str, str, float]
"""Task, data set, share of the labels."""


def cells_key(cells: Sequence[Cell]) -> object:
    """Return what identifies cells with their seeds, as in `Findings.known`."""
    return tuple((cell.key, tuple(cell.results)) for cell in cells)


@dataclass(frozen=True)
class Findings:
    """Planned runs and their results so far."""

    runs: Sequence[tuple[PlannedRun, RunResult | None]]
    reference: str | None
    """Condition that others are compared with; none: compare nothing."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Why a run has no result, by its id."""
    known: dict[object, Any] = field(default_factory=dict)
    """Cache of comparisons by `cells_key`, for the same scored data."""
    scored: str = "the dev set"
    """What the scores are of."""
    is_tuned: bool = False
    """Whether each condition's learning rate was chosen on the held-out part."""

    @cached_property
    def finished(self) -> list[tuple[PlannedRun, RunResult]]:
        """Runs with a result."""
        return [(run, result) for run, result in self.runs if result is not None]

    @cached_property
    def missing(self) -> list[tuple[PlannedRun, str]]:
        """Runs without a result, and why."""
        return [
            (run, self.reasons.get(run.id, "not yet run"))
            for run, result in self.runs
            if result is None
        ]

    @cached_property
    def conditions(self) -> list[str]:
        """Names of the conditions, in plan order."""
        return list(dict.fromkeys(run.condition for run, _ in self.runs))

    @cached_property
    def rows(self) -> list[Row]:
        """Tasks in plan order, each with its shares from the largest on."""
        tasks = list(dict.fromkeys((run.task, run.dataset) for run, _ in self.runs))
        seen = dict.fromkeys((run.task, run.dataset, run.share) for run, _ in self.runs)
        return sorted(seen, key=lambda row: (tasks.index(row[:2]), -row[2]))

    @cached_property
    def cells(self) -> dict[tuple[str, str, float, str], Cell]:
        """Results by task, data set, share and condition."""
        return {cell.key: cell for cell in collect(self.finished)}

    @cached_property
    def comparisons(self) -> list[Comparison]:
        """Every condition against the reference, where both have a result."""
        pairs = [pair for row in self.rows for pair in self._pairs(row)]
        return self._adjusted([self._once(pair, partial(compare, *pair)) for pair in pairs])

    @cached_property
    def gain_changes(self) -> list[GainChange]:
        """The gains with fewer labels against those with all of them."""
        found = []
        for task, dataset, share in self.rows:
            if share == 1:
                continue
            wholes = {pair[0].condition: pair for pair in self._pairs((task, dataset, 1.0))}
            for pair in self._pairs((task, dataset, share)):
                if whole := wholes.get(pair[0].condition):
                    make = partial(compare_gains, pair, whole)
                    found.append(self._once((*pair, *whole), make))
        return self._adjusted(found)

    @cached_property
    def ended_at_their_best(self) -> list[PlannedRun]:
        """Finished runs whose last epoch was the best one."""
        return [run for run, result in self.finished if result.ended_at_its_best]

    def _pairs(self, row: Row) -> list[Pair]:
        """Return the cells of a row, each with that of the reference."""
        base = self.cells.get((*row, self.reference or ""))
        cells = [self.cells.get((*row, name)) for name in self.conditions if name != self.reference]
        if base is None or base.task not in TASKS:
            return []
        return [(cell, base) for cell in cells if cell is not None]

    def _once(self, cells: Sequence[Cell], make: Callable[[], Any]) -> Any:
        """Return what is made of cells; it is made once for the same seeds."""
        key = cells_key(cells)
        if key not in self.known:
            self.known[key] = make()
        return self.known[key]

    def _adjusted(self, found: list[Tested]) -> list[Tested]:
        """Adjust p-values for the tasks with the same condition and share."""
        by_family: dict[tuple[str, float], list[Tested]] = {}
        for one in found:
            by_family.setdefault((one.condition, one.share), []).append(one)
        adjusted = {}
        for (condition, share), family in by_family.items():
            planned = [row for row in self.rows if row[2] == share]
            num_tests = sum(self.num_planned(row, condition) > 0 for row in planned)
            for one in adjust(family, num_tests):
                adjusted[one.task, one.dataset, share, condition] = one
        return [adjusted[one.task, one.dataset, one.share, one.condition] for one in found]

    def curve(self, task: str, dataset: str, condition: str) -> list[Cell]:
        """Return the cells of a condition by increasing share."""
        shares = sorted({share for *_, share in self.rows})
        found = [self.cells.get((task, dataset, share, condition)) for share in shares]
        return [cell for cell in found if cell is not None]

    def num_planned(self, row: Row, condition: str) -> int:
        """Return the number of seeds planned for a cell."""
        return sum(
            (run.task, run.dataset, run.share, run.condition) == (*row, condition)
            for run, _ in self.runs
        )
