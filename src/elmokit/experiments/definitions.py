"""The experiments by name, read from the table ``data/experiments.toml``, and what is in it.

No heavy imports here: `elmokit experiment --help` reads this module.
"""

import math
import tomllib
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from elmokit.config import from_dict
from elmokit.errors import InputError, find_named
from elmokit.probes.registry import find_probe

MAX_EPOCHS, MAX_PATIENCE = 100, 20  # limits for runs with few labels
SEEDS, CONTROL_SEEDS = 3, 2
"""Seeds of a run where the table names none; of control conditions."""
HELD_OUT_SHARE, MAX_HELD_OUT = 0.1, 1000
"""Part of a training set that is not trained on, but chooses learning rate and epoch."""
# with this schedule, the last of few epochs adds little
SCHEDULE = "cosine"
# a character CNN in every condition, so that a biLM is not the only one to spell unknown words,
# and static vectors on the scale of ELMo's mixtures
INPUTS = {"characters": True, "static_scale": "learned"}
Subset = Literal["all", "verbs"]
"""Examples of a data set that are used; ``verbs``: of ``srl``, the predicates that are verbs."""
RANDOM, STATIC_VECTORS, EXAMPLES = "random biLM", "static", "examples"
"""Families of vectors that a probe measures besides ``biLM``; the neighbors of table 4."""


@dataclass(frozen=True, kw_only=True)
class ExperimentOptions:
    """User options of an experiment."""

    data_dir: Path  # has a folder for each data set
    output: Path  # folder for the report; runs are stored in ``runs`` in it
    resume: bool = False
    """Go on if ``output`` holds this experiment; without it, such a folder is refused."""
    model: str | None = None  # biLM; none: the packaged one of the experiment's language
    vectors: Path | None = None  # static word vectors, ideally of the same text as the biLM
    seeds: int | None = None  # of every task and condition; none: those of the settings
    tasks: tuple[str, ...] = ()  # empty: all tasks of the experiment
    tune: bool = False
    """Try `RATE_FACTORS` for every condition with seed 0 and use the best on the held-out part."""
    rates: Path | None = None
    """Results of an earlier command, whose tuned learning rates are used instead of tuning."""
    overrides: tuple[str, ...] = ()
    """Dotted settings of `TaskRunConfig`; they override those of the experiment."""
    device: str = "auto"
    cache_dir: Path | None = None  # of layers; none: the user's cache folder
    command: str = ""  # the command line, for the report


@dataclass(frozen=True, kw_only=True)
class TaskSettings:
    """Training and data of a task in the experiments."""

    task: str
    dataset: str  # folder with one train… and one dev… file
    hidden_dims: tuple[int, ...]
    dropout: float | None = None
    epochs: int
    batch_size: int = 32
    learning_rate: float = 2e-3
    patience: int = 4
    seeds: int = SEEDS
    max_train: int | None = None
    """Training examples to draw, after those that are held out; none: all."""
    units: Literal["words", "morphemes"] = "words"
    subset: Subset = "all"
    shares: tuple[float, ...] | None = None
    """The only label shares of this task; none: all of the experiment."""

    def to_config(self, share: float = 1.0) -> dict[str, Any]:
        """Return settings for `TaskRunConfig`, before the overrides of a condition."""
        # fewer labels mean fewer updates an epoch: more epochs make up for a part of them
        scale = 1 / math.sqrt(share)
        return {
            "task": self.task, "units": self.units, "hidden_dims": list(self.hidden_dims),
            "dropout": self.dropout, "inputs": dict(INPUTS),
            "train": {
                "epochs": max(self.epochs, min(MAX_EPOCHS, round(scale * self.epochs))),
                "patience": max(self.patience, min(MAX_PATIENCE, round(scale * self.patience))),
                "batch_size": self.batch_size, "learning_rate": self.learning_rate,
                "schedule": SCHEDULE, "label_share": share,
            },
        }  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Condition:
    """A column of a table: how words are represented."""

    name: str
    overrides: tuple[str, ...] = ()  # dotted settings of `TaskRunConfig`
    tasks: tuple[str, ...] = ()  # the only ones with this condition; none: all of the experiment
    is_control: bool = False  # a control has at most `CONTROL_SEEDS`
    tuned_as: str | None = None
    """Condition whose tuned learning rate this one gets; none: it is tuned itself."""

    @property
    def tuned_name(self) -> str:
        return self.tuned_as or self.name

    def applies_to(self, task: str) -> bool:
        return not self.tasks or task in self.tasks


@dataclass(frozen=True, kw_only=True)
class ProbeSettings:
    """A probe in an experiment: a run measures one family of vectors."""

    kind: str  # name in run ids and results
    name: str
    dataset: str
    usual_test_set: str | None = None  # to use if the folder has several
    max_train: int | None = None
    reference: str  # representation that the others are tested against
    families: tuple[str, ...]

    @property
    def probe(self) -> Any:
        return find_probe(self.name)


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A table or figure of the paper: tasks and conditions, or a probe, and what is shown."""

    name: str
    title: str
    tables: tuple[str, ...] = ()  # names in `elmokit.experiments.tables`
    plot: str | None = None  # name in `elmokit.experiments.report.PLOTS`
    tasks: tuple[TaskSettings, ...] = ()
    conditions: tuple[Condition, ...] = ()
    shares: tuple[float, ...] = (1.0,)  # of the labels, the most important first
    max_seeds: int | None = None  # limit for the seeds that the settings of the tasks give
    reference: str | None = None  # condition that the others are compared with
    language: str = "en"
    probe: ProbeSettings | None = None  # measured instead of tasks

    def select_tasks(self, names: tuple[str, ...]) -> tuple[TaskSettings, ...]:
        """Return the named tasks in the experiment's order; without names, all."""
        known = [settings.task for settings in self.tasks]
        if unknown := [name for name in names if name not in known]:
            allowed = f"choose from {', '.join(known)}" if known else "it trains none"
            raise InputError(f"{self.name} has no task {unknown[0]!r}; {allowed}.")
        return tuple(task for task in self.tasks if not names or task.task in names)


def _read() -> tuple[dict[str, TaskSettings], dict[str, Experiment]]:
    table = tomllib.loads(files("elmokit").joinpath("data/experiments.toml").read_text("utf-8"))
    experiments = {}
    for name, values in table["experiments"].items():
        values["tasks"] = [table["tasks"][task] for task in values.get("tasks", ())]
        values["conditions"] = [
            table["conditions"][condition] if isinstance(condition, str) else condition
            for condition in values.get("conditions", ())
        ]
        experiments[name] = from_dict(Experiment, {"name": name} | values)
    tasks = {name: from_dict(TaskSettings, values) for name, values in table["tasks"].items()}
    return tasks, experiments


TASKS, EXPERIMENTS = _read()
"""By name: those of tasks here are of a task on one data set (``ner``, ``ner-ko``)."""


def find_experiment(name: str) -> Experiment:
    return find_named(EXPERIMENTS, name, what="experiment")
