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
"""Increased whenever the same settings, data, biLM and vectors would give other numbers."""
MODEL_KEY = "model"
"""Key of the hash of the biLM's weights, in the metadata of conditions that read the biLM."""
PLANNED_KEYS = {
    "task": "the experiment's tasks have it, see --tasks",
    "train.seed": "each run of a cell has its own, see --seeds",
    "train.label_share": "the experiment's rows have it",
}
"""Settings that only the plan may give, and why."""


@dataclass(frozen=True, kw_only=True)
class Condition:
    """A column of a table: what a word is represented by, or how."""

    name: str
    overrides: tuple[str, ...] = ()
    """Dotted settings of `TaskRunConfig`."""


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    """One run, done or not."""

    kind: str = "task"
    """``task``, or the kind of a probe."""
    task: str
    dataset: str
    condition: str
    share: float = 1.0
    """Of the training examples."""
    seed: int = 0
    metadata: Mapping[str, Any]
    """Everything that decides the result, JSON-able; with ``config`` for a task."""

    @property
    def id(self) -> str:
        """The run's name on disk."""
        text = json.dumps(
            {"kind": self.kind, "run_version": RUN_VERSION, **self.metadata}, sort_keys=True
        )
        return hashlib.sha256(text.encode()).hexdigest()[:ID_LENGTH]

    @property
    def comparison(self) -> tuple[str, str, float, int]:
        """What runs that are compared with each other have in common."""
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
    metadata: Mapping[str, Mapping[str, Any]],
    overrides: Sequence[str] = (),
    learning_rates: LearningRates | None = None,
) -> list[PlannedRun]:
    """Return task runs, ordered so that comparisons are complete early.

    All tasks and conditions with the first share and seed 0, then the next share, then the next
    seed.

    Args:
        tasks: Their settings.
        conditions: They differ in their overrides only.
        shares: Of the labels, the first one first.
        seeds: For weights, order, dropout and the draw of the share.
        metadata: What else decides a result, by data set.
        overrides: Settings over those of the tasks, for every condition.
        learning_rates: Tuned ones; they replace those of the settings.

    Raises:
        ConfigError: for an unknown setting.
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
                    decides = {**metadata[settings.dataset], "config": config}
                    if config["inputs"]["embeddings"] not in WITH_LAYERS:
                        decides.pop(MODEL_KEY, None)  # the result is the same for every such biLM
                    runs.append(
                        PlannedRun(
                            task=settings.task, dataset=settings.dataset, condition=condition.name,
                            share=share, seed=seed, metadata=decides,
                        )
                    )  # fmt: skip
    check_distinct(runs)
    return runs


def check_overrides(overrides: Sequence[str], conditions: Sequence[Condition]) -> None:
    """Reject user settings that would override what the experiment compares.

    A whole table (``train={...}``) is rejected too if it contains such a setting.

    Raises:
        InputError: naming the setting and what sets it.
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
    """Reject two runs with one id: one result would be in two cells of a table.

    Raises:
        InputError: naming both.
    """
    seen: dict[str, PlannedRun] = {}
    for run in runs:
        other = seen.setdefault(run.id, run)
        if other is not run:
            raise InputError(
                f"With these settings two runs are identical: {other.describe()}; "
                f"{run.describe()}. Remove the --set that makes them equal."
            )


def _key(override: str) -> str:
    return ".".join(part.strip() for part in override.partition("=")[0].split("."))


def config_of(
    settings: TaskSettings, condition: Condition, share: float, seed: int, overrides: Sequence[str]
) -> dict[str, Any]:
    """Return the resolved configuration of a run.

    Raises:
        ConfigError: for an unknown setting.
        InputError: if a biLM is to be fine-tuned in a condition without one.
    """
    table = settings.to_config(share)
    table["train"]["seed"] = seed
    table = apply_overrides(table, condition.overrides)
    # the user's come last, so that a message about them names them
    config = from_dict(TaskRunConfig, table, source=condition.name, overrides=overrides)
    config = config.resolved(with_static=True)  # defaults are part of the id, too
    if config.train.finetune_bilm and config.inputs.embeddings not in WITH_LAYERS:
        raise InputError(
            f"train.finetune_bilm=true has nothing to train in the condition {condition.name!r}, "
            "which reads no biLM. Remove it, or choose an experiment whose conditions all read a "
            "biLM."
        )
    return to_dict(config)
