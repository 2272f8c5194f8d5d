"""The plan of an experiment: its runs, and the learning rates that were tuned.

Tuning tries three rates per condition with seed 0; the best on the held-out part of the training
set is used.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from elmokit.config import apply_overrides, from_dict, to_dict
from elmokit.errors import InputError
from elmokit.experiments.definitions import (
    CONTROL_SEEDS,
    RANDOM,
    SEEDS,
    Condition,
    Experiment,
    ProbeSettings,
    TaskSettings,
)
from elmokit.experiments.runs import RESULTS_FILE, Outcome, PlannedRun, RunResult
from elmokit.files.json_files import read_json
from elmokit.files.sources import damage
from elmokit.tasks.runs.run_dir import TaskRunConfig

RATE_FACTORS = (1.0, 0.5, 2.0)
"""Multiples to try of the learning rate in the settings."""
NOT_TUNED = "its learning rate has not been chosen yet"
ALL_DIVERGED = "diverged with every learning rate that was tried"
PLANNED_KEYS = {
    "task": "the experiment sets it for each task, see --tasks",
    "train.seed": "each run of a table cell has its own, see --seeds",
    "train.label_share": "the rows of the experiment differ in it",
}
"""Settings that only the plan may set, and why."""

Rates = Mapping[tuple[str, str], float]
"""Tuned learning rates, by data set and condition."""


def plan_tasks(
    experiment: Experiment,
    tasks: Sequence[TaskSettings],
    *,
    metadata: Mapping[str, Mapping[str, Any]],
    seeds: int | None = None,
    overrides: Sequence[str] = (),
    rates: Rates | None = None,
) -> list[PlannedRun]:
    """Return task runs by seed, then by share.

    ``metadata`` has what else determines a result, by data set. ``overrides`` are a user's settings
    for every condition; ``seeds`` and tuned ``rates`` replace those of the settings.
    """
    # a user's setting that only one condition obeys would make the comparison unfair in silence
    _check_overrides(overrides, experiment.conditions)
    cells = [
        (share, settings, condition, seeds or _num_seeds(experiment, settings, condition))
        for share in experiment.shares
        for settings in tasks
        if settings.shares is None or share in settings.shares
        for condition in experiment.conditions
        if condition.applies_to(settings.task)
    ]
    # the seed comes first: comparisons of all cells are complete after the first seed
    last_seed = max((num_seeds for *_, num_seeds in cells), default=0)
    runs = []
    for seed, (share, settings, condition, num_seeds) in product(range(last_seed), cells):
        if seed < num_seeds:
            config = _config_of(settings, condition, share, seed, overrides)
            if rate := (rates or {}).get((settings.dataset, condition.tuned_name)):
                config["train"]["learning_rate"] = rate
            runs.append(PlannedRun(
                task=settings.task, dataset=settings.dataset, condition=condition.name,
                share=share, seed=seed, metadata={**metadata[settings.dataset], "config": config},
            ))  # fmt: skip
    return runs


def plan_probe(
    settings: ProbeSettings, *, seeds: int | None, metadata: Mapping[str, Any]
) -> list[PlannedRun]:
    """Return the runs of a probe: one per family; for untrained biLMs, one per seed."""
    return [
        PlannedRun(
            task=settings.kind, dataset=settings.dataset, condition=family, seed=seed,
            metadata={**metadata, "family": family, "seed": seed},
        )
        for family in settings.families
        for seed in range((seeds or SEEDS) if family == RANDOM else 1)
    ]  # fmt: skip


def plan_tuning(
    experiment: Experiment, tasks: Sequence[TaskSettings], **how: Any
) -> list[PlannedRun]:
    """Return the runs that try rates for the tuned conditions; ``how`` is as for `plan_tasks`."""
    tuned = tuple(c for c in experiment.conditions if c.tuned_as is None)
    experiment = replace(experiment, conditions=tuned, shares=(1.0,))
    runs = []
    for settings in tasks:
        usual = plan_tasks(experiment, [settings], **how, seeds=1)
        for factor in RATE_FACTORS:
            rates = {(run.dataset, run.condition): factor * run.learning_rate for run in usual}
            runs += plan_tasks(experiment, [settings], **how, seeds=1, rates=rates)
    return runs


def best_rates(
    runs: Sequence[PlannedRun], outcomes: Mapping[str, Outcome]
) -> tuple[Rates, dict[tuple[str, str], str]]:
    """Return the rate with the best held-out score per condition, and why there is none yet.

    A rate with which training diverged counts as tried. Ties go to the first in `RATE_FACTORS`.
    """
    rates, reasons = {}, {}
    for key in dict.fromkeys((run.dataset, run.condition) for run in runs):
        tried = [run for run in runs if (run.dataset, run.condition) == key]
        ended = [(outcomes[run.id], run.learning_rate) for run in tried if run.id in outcomes]
        scores = [(out.held_out, rate) for out, rate in ended if isinstance(out, RunResult)]
        if len(ended) < len(tried):
            reasons[key] = NOT_TUNED
        elif scores:
            rates[key] = max(scores, key=lambda pair: pair[0])[1]
        else:
            reasons[key] = ALL_DIVERGED
    return rates, reasons


def read_rates(path: Path, experiment: Experiment, tasks: Sequence[TaskSettings]) -> Rates:
    """Return the rates of tasks in an experiment that another one tuned, from its results."""
    path = path / RESULTS_FILE if path.is_dir() else path
    advice = "Give the results.json that an experiment with --tune wrote, or its folder."
    results = read_json(path, advice=advice, required=("tuned", "runs"))
    if results["tuned"] is not True:
        raise InputError(f"{path} was made without --tune: its learning rates are not tuned.")
    with damage(path, advice):
        known = {
            (run["dataset"], run["condition"]): float(run["config"]["train"]["learning_rate"])
            for run in results["runs"]
        }
    needed = dict.fromkeys(
        (task.dataset, condition.tuned_name)
        for task in tasks
        for condition in experiment.conditions
        if condition.applies_to(task.task)
    )
    if lacking := [", ".join(key) for key in needed if key not in known]:
        raise InputError(
            f"{path} has no run of {'; '.join(lacking)} (data, condition). Use --tune."
        )
    return {key: known[key] for key in needed}


def _num_seeds(experiment: Experiment, settings: TaskSettings, condition: Condition) -> int:
    limits = (settings.seeds, experiment.max_seeds, CONTROL_SEEDS if condition.is_control else None)
    return min(limit for limit in limits if limit is not None)


def _check_overrides(overrides: Sequence[str], conditions: Sequence[Condition]) -> None:
    # also whole tables that hold such a setting
    differ = "the conditions of the experiment differ in it"
    compared = {_key(text): differ for condition in conditions for text in condition.overrides}
    for override in overrides:
        for key, reason in (PLANNED_KEYS | compared).items():
            if f"{key}.".startswith(f"{_key(override)}."):
                raise InputError(f"--set {override}: `{key}` cannot be set here: {reason}.")


def _key(override: str) -> str:
    return override.partition("=")[0].replace(" ", "")


def _config_of(
    settings: TaskSettings, condition: Condition, share: float, seed: int, overrides: Sequence[str]
) -> dict[str, Any]:
    table = settings.to_config(share)
    table["train"]["seed"] = seed
    table = apply_overrides(table, condition.overrides)
    # user overrides come last, so that error messages name them
    config = from_dict(TaskRunConfig, table, source=condition.name, overrides=overrides)
    return to_dict(config.resolved(with_static=True))  # the id includes defaults
