"""Learning rates of the conditions: tuned here, or by an earlier command.

Tuning tries three rates per condition with seed 0; the best on the held-out part of the training
set is used.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from elmokit.errors import FormatError, InputError
from elmokit.experiments.definitions import Experiment, TaskSettings
from elmokit.experiments.plan import ConditionKey, LearningRates, PlannedRun
from elmokit.experiments.report import RESULTS_FILE
from elmokit.experiments.runs import RunStore
from elmokit.files.json_files import read_json

RATE_FACTORS = (1.0, 0.5, 2.0)
"""Multiples to try of the learning rate in the settings."""
NOT_TUNED = "its learning rate has not been chosen yet"
ALL_DIVERGED = "diverged with every learning rate that was tried"
ADVICE = "Give the results.json that an experiment with --tune wrote, or its folder."


def tuning_runs(
    experiment: Experiment,
    plan: Callable[[Experiment, LearningRates, int | None], list[PlannedRun]],
) -> list[PlannedRun]:
    """Return the runs that try rates for the tuned conditions, those of one task together.

    ``plan`` returns the runs of an experiment with these rates and this number of seeds.
    """
    tuned = tuple(c for c in experiment.conditions if c.tuned_as is None)
    experiment = replace(experiment, conditions=tuned, shares=(1.0,))
    usual = plan(experiment, {}, 1)
    runs = []
    for factor in RATE_FACTORS:
        rates = {run.condition_key: factor * run.learning_rate for run in usual}
        runs += plan(experiment, rates, 1)
    order = list(dict.fromkeys(run.dataset for run in runs))
    return sorted(runs, key=lambda run: order.index(run.dataset))


def best_rates(
    runs: Iterable[PlannedRun], store: RunStore
) -> tuple[LearningRates, set[ConditionKey]]:
    """Return the learning rate with the best held-out score per condition, once all are tried.

    A rate with which training diverged counts as tried. Ties go to the first in `RATE_FACTORS`.
    Also returns the conditions that diverged with every rate.
    """
    attempts: dict[ConditionKey, list[PlannedRun]] = {}
    for run in runs:
        attempts.setdefault(run.condition_key, []).append(run)
    rates, hopeless = {}, set()
    for condition, tried in attempts.items():
        if not all(map(store.is_settled, tried)):
            continue
        results = [(store.read(run), run.learning_rate) for run in tried]
        scores = [(result.held_out, rate) for result, rate in results if result is not None]
        if scores:
            rates[condition] = max(scores, key=lambda pair: pair[0])[1]
        else:
            hopeless.add(condition)
    return rates, hopeless


def read_tuned_rates(
    path: Path, experiment: Experiment, tasks: Sequence[TaskSettings]
) -> LearningRates:
    """Return the rates of tasks in an experiment, from another one's results file or its folder."""
    path = path / RESULTS_FILE if path.is_dir() else path
    results = read_json(path, advice=ADVICE, required=("tuned", "runs"))
    if results["tuned"] is not True:
        raise InputError(f"{path} was made without --tune: its learning rates are not tuned.")
    known: dict[ConditionKey, float] = {}
    try:
        for run in results["runs"]:
            key = run["task"], run["dataset"], run["condition"]
            rate = float(run["config"]["train"]["learning_rate"])
            if not 0 < rate < math.inf or known.setdefault(key, rate) != rate:
                raise ValueError(f"{rate:g} in {', '.join(key)}, or several rates there")
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError(f"{path}: no usable learning rate: {error}. {ADVICE}") from error
    needed = dict.fromkeys(
        (task.task, task.dataset, condition.tuned_name)
        for task in tasks
        for condition in experiment.conditions
        if condition.applies_to(task.task)
    )
    if lacking := [", ".join(key) for key in needed if key not in known]:
        raise InputError(
            f"{path} has no run of {'; '.join(lacking)} (task, data, condition), so no learning "
            "rate for it. Use --tune, choose other --tasks, or give results that have it."
        )
    return {key: known[key] for key in needed}
