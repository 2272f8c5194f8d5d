"""The plan of an experiment: its runs and their ids.

A run's id is a hash of everything that determines its result: settings, data, biLM, word vectors
and versions. Experiments that share a run share its id.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from elmokit.config import apply_overrides, from_dict, to_dict
from elmokit.errors import InputError
from elmokit.experiments.settings import CONTROL_SEEDS, TaskSettings
from elmokit.tasks.inputs.settings import CONDITION_INPUTS
from elmokit.tasks.runs.config import TaskRunConfig

ID_LENGTH = 16
RUN_VERSION = 3
"""Increased when the same settings, data, biLM and vectors would give different numbers."""
MODEL_KEY = "model"
"""Metadata key for the hash of the biLM's weights, in conditions that read the biLM."""
PLANNED_KEYS = {
    "task": "the experiment sets it for each task, see --tasks",
    "train.seed": "each run of a table cell has its own, see --seeds",
    "train.label_share": "the rows of the experiment differ in it",
}
"""Settings that only the plan may set, and why."""


@dataclass(frozen=True, kw_only=True)
class Condition:
    """A column of a table: how words are represented."""

    name: str
    overrides: tuple[str, ...] = ()
    """Dotted settings of `TaskRunConfig`."""
    tasks: tuple[str, ...] = ()
    """The only tasks with this condition; none: all of the experiment."""
    is_control: bool = False
    """A control has at most `CONTROL_SEEDS`."""
    tuned_as: str | None = None
    """Condition whose tuned learning rate this one gets; none: it is tuned itself."""

    @property
    def tuned_name(self) -> str:
        """Name of the condition that is tuned."""
        return self.tuned_as or self.name


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    """One run, finished or not."""

    kind: str = "task"
    """``task``, or the kind of a probe."""
    task: str
    dataset: str
    condition: str
    share: float = 1.0
    """Share of the training examples."""
    seed: int = 0
    metadata: Mapping[str, Any]
    """Everything that determines the result, JSON-serializable; for a task, with ``config``."""

    @property
    def id(self) -> str:
        """The run's name on disk."""
        content = {"kind": self.kind, "run_version": RUN_VERSION, **self.metadata}
        text = json.dumps(content, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:ID_LENGTH]

    @property
    def comparison(self) -> tuple[str, str, float, int]:
        """Key shared by the runs that are compared with each other."""
        return self.task, self.dataset, self.share, self.seed

    @property
    def learning_rate(self) -> float:
        """Of a task run."""
        return self.metadata["config"]["train"]["learning_rate"]

    def describe(self, *, with_rate: bool = False) -> str:
        """Describe the run in words."""
        share = "" if self.share == 1 else f", {self.share:.4g} of the labels"
        rate = f", learning rate {self.learning_rate:.4g}" if with_rate else ""
        return f"{self.task} ({self.dataset}), {self.condition}{share}, seed {self.seed}{rate}"


LearningRates = Mapping[tuple[str, str, str], float]
"""By task, data set and tuned condition."""


def plan_tasks(
    tasks: Sequence[TaskSettings],
    conditions: Sequence[Condition],
    *,
    shares: Sequence[float],
    metadata: Mapping[str, Mapping[str, Any]],
    seeds: int | None = None,
    max_seeds: int | None = None,
    overrides: Sequence[str] = (),
    learning_rates: LearningRates | None = None,
) -> list[PlannedRun]:
    """Return task runs, ordered so that comparisons are complete early: by seed, then by share.

    Args:
        tasks: Settings of the tasks.
        conditions: They differ only in their overrides.
        shares: Shares of the labels.
        metadata: What else determines a result, by data set.
        seeds: Seeds of every task and condition; none: those of the settings. A seed decides
            weights, order, dropout and the draw of the share.
        max_seeds: Limit for the seeds of the settings.
        overrides: User settings, for every condition.
        learning_rates: Tuned rates; they replace those of the settings.

    Raises:
        ConfigError: for an unknown setting.
        InputError: for an override of what is compared, or one that a condition cannot have.
    """
    check_overrides(overrides, conditions)
    rates = learning_rates or {}
    cells = [
        (share, settings, condition, seeds or _num_seeds(settings, condition, max_seeds))
        for share in shares
        for settings in tasks
        if settings.shares is None or share in settings.shares
        for condition in conditions
        if not condition.tasks or settings.task in condition.tasks
    ]
    runs = []
    for seed in range(max((num_seeds for *_, num_seeds in cells), default=0)):
        for share, settings, condition, num_seeds in cells:
            if seed >= num_seeds:
                continue
            config = config_of(settings, condition, share, seed, overrides)
            key = settings.task, settings.dataset, condition.tuned_name
            if key in rates:
                config["train"]["learning_rate"] = rates[key]
            run_metadata = {**metadata[settings.dataset], "config": config}
            if not CONDITION_INPUTS[config["inputs"]["embeddings"]].needs_bilm:
                run_metadata.pop(MODEL_KEY, None)  # any biLM gives the same result
            runs.append(PlannedRun(
                task=settings.task, dataset=settings.dataset, condition=condition.name,
                share=share, seed=seed, metadata=run_metadata,
            ))  # fmt: skip
    return distinct(runs)


def _num_seeds(settings: TaskSettings, condition: Condition, limit: int | None) -> int:
    usual = min(settings.seeds, CONTROL_SEEDS) if condition.is_control else settings.seeds
    return usual if limit is None else min(usual, limit)


def check_overrides(overrides: Sequence[str], conditions: Sequence[Condition]) -> None:
    """Reject user settings, also whole tables, that would override what is compared."""
    given = dict(PLANNED_KEYS)
    for condition in conditions:
        for override in condition.overrides:
            given.setdefault(_key(override), "the conditions of the experiment differ in it")
    for override in overrides:
        for key, reason in given.items():
            if f"{key}.".startswith(f"{_key(override)}."):
                raise InputError(f"--set {override}: `{key}` cannot be set here: {reason}.")


def distinct(runs: list[PlannedRun]) -> list[PlannedRun]:
    """Return the runs, or reject two with the same id: one result would fill two cells."""
    seen: dict[str, PlannedRun] = {}
    for run in runs:
        other = seen.setdefault(run.id, run)
        if other is not run:
            raise InputError(
                f"With these settings two runs are identical: {other.describe()}; "
                f"{run.describe()}. Remove the --set that makes them equal."
            )
    return runs


def _key(override: str) -> str:
    return ".".join(part.strip() for part in override.partition("=")[0].split("."))


def config_of(
    settings: TaskSettings, condition: Condition, share: float, seed: int, overrides: Sequence[str]
) -> dict[str, Any]:
    """Return the resolved configuration of a run."""
    table = settings.to_config(share)
    table["train"]["seed"] = seed
    table = apply_overrides(table, condition.overrides)
    # user overrides come last, so that error messages name them
    config = from_dict(TaskRunConfig, table, source=condition.name, overrides=overrides)
    config = config.resolved(with_static=True)  # the id includes defaults
    if config.train.finetune_bilm and not config.inputs.has_layers:
        raise InputError(
            f"train.finetune_bilm=true has nothing to train in the condition {condition.name!r}, "
            "which reads no biLM. Remove it, or choose an experiment whose conditions all read a "
            "biLM."
        )
    return to_dict(config)
