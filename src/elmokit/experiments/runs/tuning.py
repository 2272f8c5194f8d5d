"""Tuning: with seed 0, three learning rates are tried per condition.

The best on the held-out part of the training set is used.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from elmokit.experiments.plan import LearningRates, PlannedRun
from elmokit.experiments.runs.store import RunStore

RATE_FACTORS = (1.0, 0.5, 2.0)
"""Multiples to try of the learning rate in the settings."""
NOT_TUNED = "its learning rate has not been chosen yet"
ALL_DIVERGED = "diverged with every learning rate that was tried"

ConditionKey = tuple[str, str, str]
"""Task, data set and condition."""


@dataclass(frozen=True)
class ChosenRates:
    """The outcome of the tuning runs so far."""

    rates: LearningRates
    """Best rates of the conditions that have tried all rates."""
    hopeless: frozenset[ConditionKey] = frozenset()
    """Conditions that diverged with every rate."""

    def reason_against(self, run: PlannedRun, tuned_name: str) -> str | None:
        """Return why a run cannot be started, or none if there is a rate for it.

        ``tuned_name`` is the condition whose rate it gets, see `Condition`.
        """
        tuned = run.task, run.dataset, tuned_name
        if tuned in self.rates:
            return None
        return ALL_DIVERGED if tuned in self.hopeless else NOT_TUNED


def condition_of(run: PlannedRun) -> ConditionKey:
    """Return the condition of a run, as a key for learning rates."""
    return run.task, run.dataset, run.condition


def tuning_runs(plan: Callable[[LearningRates], list[PlannedRun]]) -> list[PlannedRun]:
    """Return the runs that try rates, those of one comparison together.

    ``plan`` returns the runs of the tuned conditions, seed 0, all labels, with the given rates.
    """
    runs = []
    for factor in RATE_FACTORS:
        runs += plan({condition_of(run): factor * run.learning_rate for run in plan({})})
    order = list(dict.fromkeys(run.comparison for run in runs))
    return sorted(runs, key=lambda run: order.index(run.comparison))


def best_rates(runs: Iterable[PlannedRun], store: RunStore) -> ChosenRates:
    """Return the learning rate with the best held-out score per condition, once all are tried.

    A rate with which training diverged counts as tried. Ties go to the first in `RATE_FACTORS`.
    """
    tried: dict[ConditionKey, list[PlannedRun]] = {}
    for run in runs:
        tried.setdefault(condition_of(run), []).append(run)
    best, hopeless = {}, set()
    for condition, attempts in tried.items():
        if not all(store.is_settled(run) for run in attempts):
            continue
        results = [(store.read(run), run.learning_rate) for run in attempts]
        scores = [(result.held_out, rate) for result, rate in results if result is not None]
        if scores:
            best[condition] = max(scores, key=lambda pair: pair[0])[1]
        else:
            hopeless.add(condition)
    return ChosenRates(best, frozenset(hopeless))
