"""Learning rates: three are tried for every condition with seed 0, and the best on dev is taken."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from elmokit.experiments.plan import LearningRates, PlannedRun
from elmokit.experiments.runs.store import RunStore

RATE_FACTORS = (1.0, 0.5, 2.0)
"""Of the learning rate in the settings: those that are tried."""
NOT_TUNED = "its learning rate is not chosen yet"
ALL_DIVERGED = "diverged with every learning rate that was tried"

ArmKey = tuple[str, str, str]
"""Task, data set and condition."""


@dataclass(frozen=True)
class ChosenRates:
    """What the tuning runs that are there say."""

    rates: LearningRates
    """Of conditions that have tried all."""
    hopeless: frozenset[ArmKey] = frozenset()
    """Conditions that diverged with each of them."""

    def reason_against(self, run: PlannedRun) -> str | None:
        """Return why a run cannot be made, or none if its condition has a rate."""
        if arm_of(run) in self.rates:
            return None
        return ALL_DIVERGED if arm_of(run) in self.hopeless else NOT_TUNED


def arm_of(run: PlannedRun) -> ArmKey:
    """Return what a learning rate is chosen for."""
    return run.task, run.dataset, run.condition


def tuning_runs(plan: Callable[[LearningRates], list[PlannedRun]]) -> list[PlannedRun]:
    """Return the runs with which rates are tried, those of one comparison together.

    Args:
        plan: Returns the runs of seed 0 with all labels, with these rates instead of their own.
    """
    runs = []
    for factor in RATE_FACTORS:
        runs += plan({arm_of(run): factor * _rate(run) for run in plan({})})
    order = list(dict.fromkeys(run.comparison for run in runs))
    return sorted(runs, key=lambda run: order.index(run.comparison))


def best_rates(runs: Iterable[PlannedRun], store: RunStore) -> ChosenRates:
    """Return the learning rate with the best dev score of each condition that has tried them all.

    A rate with which training diverged was tried, and has lost. Of equal ones the one that comes
    first in `RATE_FACTORS`.
    """
    tried: dict[ArmKey, list[PlannedRun]] = {}
    for run in runs:
        tried.setdefault(arm_of(run), []).append(run)
    best, hopeless = {}, set()
    for condition, attempts in tried.items():
        if not all(store.is_settled(run) for run in attempts):
            continue
        results = [(store.read(run), _rate(run)) for run in attempts]
        scores = [(result.value, rate) for result, rate in results if result is not None]
        if scores:
            best[condition] = max(scores, key=lambda pair: pair[0])[1]
        else:
            hopeless.add(condition)
    return ChosenRates(best, frozenset(hopeless))


def _rate(run: PlannedRun) -> float:
    return run.facts["config"]["train"]["learning_rate"]
