"""Learning rates of the conditions: tuned here, or by an earlier command.

Tuning tries three rates per condition with seed 0; the best on the held-out part of the training
set is used.
"""

import math
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any

from elmokit.errors import FormatError, InputError
from elmokit.experiments.plan import ConditionKey, LearningRates, PlannedRun
from elmokit.experiments.report import RESULTS_FILE
from elmokit.experiments.runs import RunStore
from elmokit.files.json_files import read_json

RATE_FACTORS = (1.0, 0.5, 2.0)
"""Multiples to try of the learning rate in the settings."""
NOT_TUNED = "its learning rate has not been chosen yet"
ALL_DIVERGED = "diverged with every learning rate that was tried"
ADVICE = "Give the results.json that an experiment with --tune wrote, or its folder."


def tuning_runs(plan: Callable[[LearningRates], list[PlannedRun]]) -> list[PlannedRun]:
    """Return the runs that try rates, those of one task together.

    ``plan`` returns the runs of the tuned conditions, seed 0, all labels, with these rates.
    """
    usual = plan({})
    runs = []
    for factor in RATE_FACTORS:
        runs += plan({run.condition_key: factor * run.learning_rate for run in usual})
    order = list(dict.fromkeys((run.task, run.dataset) for run in runs))
    return sorted(runs, key=lambda run: order.index((run.task, run.dataset)))


def best_rates(
    runs: Iterable[PlannedRun], store: RunStore
) -> tuple[LearningRates, set[ConditionKey]]:
    """Return the learning rate with the best held-out score per condition, once all are tried.

    A rate with which training diverged counts as tried. Ties go to the first in `RATE_FACTORS`.
    Also returns the conditions that diverged with every rate.
    """
    tried: dict[ConditionKey, list[PlannedRun]] = {}
    for run in runs:
        tried.setdefault(run.condition_key, []).append(run)
    rates, hopeless = {}, set()
    for condition, attempts in tried.items():
        if not all(store.is_settled(run) for run in attempts):
            continue
        results = [(store.read(run), run.learning_rate) for run in attempts]
        scores = [(result.held_out, rate) for result, rate in results if result is not None]
        if scores:
            rates[condition] = max(scores, key=lambda pair: pair[0])[1]
        else:
            hopeless.add(condition)
    return rates, hopeless


def read_tuned_rates(path: Path, needed: Collection[ConditionKey]) -> LearningRates:
    """Return the learning rates of the needed conditions, from a results file or its folder.

    Raises:
        FileNotFoundError: if there is no such file.
        FormatError: if it is damaged, or no results of an experiment.
        InputError: if its rates were not tuned, or it has no run of a needed condition.
    """
    path = path / RESULTS_FILE if path.is_dir() else path
    if not path.exists():
        raise FileNotFoundError(f"There is no file of learning rates {path}. {ADVICE}")
    results = read_json(path, advice=ADVICE, required=("experiment", "tuned", "runs"))
    if results["tuned"] is not True:
        raise InputError(f"{path} was made without --tune: its learning rates are not tuned.")
    rates: dict[ConditionKey, float] = {}
    try:
        for run in results["runs"]:
            key = run["task"], run["dataset"], run["condition"]
            if rates.setdefault(key, _rate(run)) != _rate(run):
                raise ValueError(f"{', '.join(key)} has several learning rates")
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError(
            f"{path}: a run has no usable learning rate ({error}). {ADVICE}"
        ) from error
    if lacking := [", ".join(key) for key in needed if key not in rates]:
        raise InputError(
            f"{path} has no run of {'; '.join(lacking)} (task, data, condition), so no learning "
            "rate for it. Use --tune, choose other --tasks, or give results that have it."
        )
    return {key: rates[key] for key in needed}


def _rate(run: Any) -> float:
    rate = run["config"]["train"]["learning_rate"]
    if not (isinstance(rate, int | float) and 0 < rate < math.inf):
        raise ValueError(f"got {rate!r}")
    return float(rate)
