"""The results of an experiment so far, in plan order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from elmokit.experiments.plan import PlannedRun
from elmokit.experiments.results.comparison import Cell, Comparison, collect, compare
from elmokit.experiments.runs.store import RunResult
from elmokit.tasks.registry import TASKS

Row = tuple[str, str, float]
"""Task, data set, share of the labels."""


@dataclass(frozen=True)
class Findings:
    """Planned runs and their results so far."""

    runs: Sequence[tuple[PlannedRun, RunResult | None]]
    reference: str | None
    """Condition that others are compared with; none: compare nothing."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Why a run has no result, by its id."""
    known: dict[object, Comparison | None] = field(default_factory=dict)
    """Cache of comparisons."""

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
        """Every condition against the reference, if they have a common seed."""
        found = []
        for row in self.rows:
            base = self.cells.get((*row, self.reference or ""))
            for condition in self.conditions:
                cell = self.cells.get((*row, condition))
                if base and cell and condition != self.reference and cell.task in TASKS:
                    found.append(self._compare(cell, base))
        return [one for one in found if one is not None]

    def _compare(self, cell: Cell, base: Cell) -> Comparison | None:
        key = (cell.key, base.key, tuple(cell.results), tuple(base.results))
        if key not in self.known:
            self.known[key] = compare(cell, base)
        return self.known[key]

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
