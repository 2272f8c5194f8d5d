"""The plan of an experiment: its runs and their ids.

A run's id is a hash of everything that determines its result: settings, data, biLM, word vectors
and versions.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from elmokit.config import apply_overrides, from_dict, to_dict
from elmokit.errors import InputError
from elmokit.experiments.definitions import (
    CONTROL_SEEDS,
    EXAMPLES,
    POS_SENTENCES,
    RANDOM,
    STATIC_VECTORS,
    Condition,
    Experiment,
    ProbeSettings,
    TaskSettings,
)
from elmokit.tasks.inputs.settings import CONDITION_INPUTS
from elmokit.tasks.runs.config import TaskRunConfig
from elmokit.version import __version__

ID_LENGTH = 16
RUN_VERSION = 3
"""Increased when the same settings, data, biLM and vectors would give different numbers."""
SAMPLE_VERSION = 4
"""Increased when the same file would give a different sample. Not on 2026-11-26, when units without
an example stopped counting: the data of the published runs give the same samples."""
MODEL_KEY = "model"
"""Metadata key for the hash of the biLM's weights, in conditions that read the biLM."""
PLANNED_KEYS = {
    "task": "the experiment sets it for each task, see --tasks",
    "train.seed": "each run of a table cell has its own, see --seeds",
    "train.label_share": "the rows of the experiment differ in it",
}
"""Settings that only the plan may set, and why."""

ConditionKey = tuple[str, str, str]
"""Task, data set and condition."""
LearningRates = Mapping[ConditionKey, float]
"""Tuned rates, by tuned condition."""


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
    def condition_key(self) -> ConditionKey:
        """The condition of the run, as a key for learning rates."""
        return self.task, self.dataset, self.condition

    @property
    def learning_rate(self) -> float:
        """Learning rate of a task run."""
        return self.metadata["config"]["train"]["learning_rate"]

    def describe(self, *, with_rate: bool = False) -> str:
        """Describe the run in words."""
        share = "" if self.share == 1 else f", {self.share:.4g} of the labels"
        rate = f", learning rate {self.learning_rate:.4g}" if with_rate else ""
        return f"{self.task} ({self.dataset}), {self.condition}{share}, seed {self.seed}{rate}"


def plan_tasks(
    experiment: Experiment,
    tasks: Sequence[TaskSettings],
    *,
    metadata: Mapping[str, Mapping[str, Any]],
    seeds: int | None = None,
    overrides: Sequence[str] = (),
    learning_rates: LearningRates | None = None,
) -> list[PlannedRun]:
    """Return task runs, ordered so that comparisons are complete early: by seed, then by share.

    Args:
        experiment: Gives conditions, which differ only in their overrides, and shares.
        tasks: Those of its tasks that are run.
        metadata: What else determines a result, by data set.
        seeds: Seeds of every task and condition; none: those of the settings. A seed decides
            weights, order, dropout and the draw of the share.
        overrides: User settings, for every condition.
        learning_rates: Tuned rates; they replace those of the settings.
    """
    _check_overrides(overrides, experiment.conditions)
    rates = learning_rates or {}
    cells = [
        (share, settings, condition, seeds or _num_seeds(experiment, settings, condition))
        for share in experiment.shares
        for settings in tasks
        if settings.shares is None or share in settings.shares
        for condition in experiment.conditions
        if condition.is_of(settings.task)
    ]
    runs = []
    for seed in range(max((num_seeds for *_, num_seeds in cells), default=0)):
        for share, settings, condition, num_seeds in cells:
            if seed >= num_seeds:
                continue
            config = _config_of(settings, condition, share, seed, overrides)
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
    return _distinct(runs)


def plan_probe(
    settings: ProbeSettings,
    *,
    seeds: int,
    data: Mapping[str, str],
    bilm: Mapping[str, Any],
    vectors_hash: str,
) -> list[PlannedRun]:
    """Return the runs of a probe: one per family; for untrained biLMs, one per seed.

    ``data`` has the hashes of the files by name, ``bilm`` what identifies the biLM.
    """
    runs = []
    for family in settings.families:
        for seed in range(seeds if family == RANDOM else 1):
            metadata: dict[str, Any] = {
                "elmokit_version": __version__, "family": family, "data": data,
                "sample": [SAMPLE_VERSION, POS_SENTENCES], "seed": seed,
            }  # fmt: skip
            if family != STATIC_VECTORS:
                metadata |= bilm
            if family in (STATIC_VECTORS, EXAMPLES):
                metadata["vectors"] = vectors_hash
            runs.append(PlannedRun(
                kind=settings.kind, task=settings.kind, dataset=settings.dataset,
                condition=family, seed=seed, metadata=metadata,
            ))  # fmt: skip
    return _distinct(runs)


def _num_seeds(experiment: Experiment, settings: TaskSettings, condition: Condition) -> int:
    limits = (experiment.max_seeds, CONTROL_SEEDS if condition.is_control else None)
    return min([settings.seeds, *(limit for limit in limits if limit is not None)])


def _check_overrides(overrides: Sequence[str], conditions: Sequence[Condition]) -> None:
    """Reject user settings, also whole tables, that would override what is compared."""
    reserved = dict(PLANNED_KEYS)
    for condition in conditions:
        for override in condition.overrides:
            reserved.setdefault(_key(override), "the conditions of the experiment differ in it")
    for override in overrides:
        for key, reason in reserved.items():
            if f"{key}.".startswith(f"{_key(override)}."):
                raise InputError(f"--set {override}: `{key}` cannot be set here: {reason}.")


def _key(override: str) -> str:
    return ".".join(part.strip() for part in override.partition("=")[0].split("."))


def _distinct(runs: list[PlannedRun]) -> list[PlannedRun]:
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


def _config_of(
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
            "which reads no biLM. Remove it, or choose an experiment whose conditions all read one."
        )
    return to_dict(config)
