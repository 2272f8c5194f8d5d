"""What a run is: task, data, condition, share of the labels, seed; and its id.

A run's id is a hash of everything that decides its result: settings, data, biLM, word vectors,
versions. The same run of two experiments has one id, and a changed setting another.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from elmokit.config import apply_overrides, from_dict, to_dict
from elmokit.errors import InputError
from elmokit.experiments.settings import TaskSettings
from elmokit.tasks.inputs.settings import WITH_LAYERS
from elmokit.tasks.runs.config import TaskRunConfig

ID_LENGTH = 16
RUN_VERSION = 1
"""Changes whenever the same settings, data, biLM and vectors would give other numbers."""
MODEL_FACT = "model"
"""Among the facts: the hash of the biLM's weights, which decides the conditions that read it."""
PLANNED_KEYS = {
    "task": "the experiment's tasks have it, see --tasks",
    "train.seed": "each run of a cell has its own, see --seeds",
    "train.label_share": "the experiment's rows have it",
}
"""Settings that the plan gives, and why nobody else may."""


@dataclass(frozen=True, kw_only=True)
class Condition:
    """A column of a table: what a word is represented by, or how."""

    name: str
    overrides: tuple[str, ...] = ()
    """Dotted settings of `TaskRunConfig`."""


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    """One result to be had."""

    kind: str = "task"
    """Who makes it: ``task``, or the name of a probe."""
    task: str
    dataset: str
    condition: str
    share: float = 1.0
    """Of the training examples."""
    seed: int = 0
    facts: Mapping[str, Any]
    """All that decides the result, JSON-able; with ``config`` for a task."""

    @property
    def id(self) -> str:
        """The run's name on disk."""
        text = json.dumps(
            {"kind": self.kind, "run_version": RUN_VERSION, **self.facts}, sort_keys=True
        )
        return hashlib.sha256(text.encode()).hexdigest()[:ID_LENGTH]

    @property
    def comparison(self) -> tuple[str, str, float, int]:
        """What the conditions have in common that are compared with each other."""
        return self.task, self.dataset, self.share, self.seed

    def describe(self) -> str:
        """Return the run in words."""
        share = "" if self.share == 1 else f", {self.share:.4g} of the labels"
        return f"{self.task} ({self.dataset}), {self.condition}{share}, seed {self.seed}"


LearningRates = Mapping[tuple[str, str, str], float]
"""By task, data set and condition."""


def plan_tasks(
    tasks: Sequence[TaskSettings],
    conditions: Sequence[Condition],
    *,
    shares: Sequence[float],
    seeds: Iterable[int],
    facts: Mapping[str, Mapping[str, Any]],
    overrides: Sequence[str] = (),
    learning_rates: LearningRates | None = None,
) -> list[PlannedRun]:
    """Return task runs in the order in which they make complete comparisons.

    All tasks and conditions with the first share and seed 0, then the next share, then the next
    seed.

    Args:
        tasks: Their settings.
        conditions: All with the same settings but for their own overrides.
        shares: Of the labels, the first one first.
        seeds: Of weights, order and dropout, and of the share's draw.
        facts: What else decides a result, by data set; `MODEL_FACT` only of conditions with a biLM.
        overrides: Settings over those of the tasks, for every condition.
        learning_rates: Chosen ones, over those of the settings.

    Raises:
        ConfigError: for an override that no task has.
        InputError: for an override of what is compared, or that a condition cannot have.
    """
    check_overrides(overrides, conditions)
    runs = []
    for seed in seeds:
        for share in shares:
            for settings in tasks:
                if settings.shares is not None and share not in settings.shares:
                    continue
                for condition in conditions:
                    config = config_of(settings, condition, share, seed, overrides)
                    rate = (learning_rates or {}).get(
                        (settings.task, settings.dataset, condition.name)
                    )
                    if rate is not None:
                        config["train"]["learning_rate"] = rate
                    decides = {**facts[settings.dataset], "config": config}
                    if config["inputs"]["embeddings"] not in WITH_LAYERS:
                        decides.pop(MODEL_FACT, None)  # holds for every biLM that reads such words
                    runs.append(
                        PlannedRun(
                            task=settings.task, dataset=settings.dataset, condition=condition.name,
                            share=share, seed=seed, facts=decides,
                        )
                    )  # fmt: skip
    check_distinct(runs)
    return runs


def check_overrides(overrides: Sequence[str], conditions: Sequence[Condition]) -> None:
    """Refuse a user's settings that would make alike what the experiment compares.

    A whole table (``train={...}``) is refused too if such a setting is in it.

    Raises:
        InputError: with the setting, and who gives it.
    """
    given = dict(PLANNED_KEYS)
    for condition in conditions:
        for override in condition.overrides:
            given.setdefault(_key(override), "the conditions of the experiment differ in it")
    for override in overrides:
        for key, reason in given.items():
            if f"{key}.".startswith(f"{_key(override)}."):
                raise InputError(f"--set {override}: `{key}` cannot be set here: {reason}.")


def check_distinct(runs: Sequence[PlannedRun]) -> None:
    """Refuse two runs of one name: one result would stand in two places of a table.

    Raises:
        InputError: with both.
    """
    seen: dict[str, PlannedRun] = {}
    for run in runs:
        other = seen.setdefault(run.id, run)
        if other is not run:
            raise InputError(
                f"With these settings nothing distinguishes two runs: {other.describe()}; "
                f"{run.describe()}. Take the --set that makes them alike away."
            )


def _key(override: str) -> str:
    return ".".join(part.strip() for part in override.partition("=")[0].split("."))


def config_of(
    settings: TaskSettings, condition: Condition, share: float, seed: int, overrides: Sequence[str]
) -> dict[str, Any]:
    """Return the resolved configuration of a run.

    Raises:
        ConfigError: for an override that there is not.
        InputError: if a biLM is to learn in a condition without one.
    """
    table = settings.to_config(share)
    table["train"]["seed"] = seed
    table = apply_overrides(table, condition.overrides)
    # the user's come last, and are named in a message about them
    config = from_dict(TaskRunConfig, table, source=condition.name, overrides=overrides)
    config = config.resolved(with_static=True)  # what it leaves open is part of the id, too
    _check_finetuning(config, condition)
    return to_dict(config)


def _check_finetuning(config: TaskRunConfig, condition: Condition) -> None:
    if config.train.finetune_bilm and config.inputs.embeddings not in WITH_LAYERS:
        raise InputError(
            f"train.finetune_bilm=true has nothing to train in the condition {condition.name!r}, "
            "which reads no biLM. Take it away, or choose an experiment whose conditions all have "
            "a biLM."
        )
