"""The experiments, as data: tasks, conditions, label shares, and how what they find is shown."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from elmokit.errors import InputError
from elmokit.experiments import settings
from elmokit.experiments.plan import Condition
from elmokit.experiments.probes import NEIGHBOR_PROBE, POS_PROBE, WSD_PROBE, Probe
from elmokit.experiments.results import tables
from elmokit.experiments.results.findings import Findings
from elmokit.experiments.results.plots import plot_curves, plot_mixes
from elmokit.experiments.results.probe_tables import example_table, probe_table
from elmokit.experiments.results.tables import Table
from elmokit.experiments.settings import TaskSettings

DEFAULT_SEEDS = 3
ShowTable = Callable[[Findings], Table]
Plot = Callable[[Findings, Path], bool]


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A table or figure of the paper."""

    name: str
    title: str
    tables: tuple[ShowTable, ...]
    plot: Plot | None = None
    tasks: tuple[TaskSettings, ...] = ()
    conditions: tuple[Condition, ...] = ()
    shares: tuple[float, ...] = (1.0,)
    """Of the labels, the most important first."""
    reference: str | None = None
    """Condition that others are compared with."""
    language: str = "en"
    """Of the packaged biLM that is taken if none is named."""
    probe: Probe | None = None
    """What is measured instead of tasks."""


STATIC = Condition(name="static", overrides=("inputs.embeddings=static",))
ELMO = Condition(name="elmo", overrides=("inputs.embeddings=elmo",))


def _elmo(name: str, *overrides: str) -> Condition:
    return Condition(name=name, overrides=(*ELMO.overrides, *overrides))


_QA_NLI_SRL = (settings.QA, settings.NLI, settings.SRL)
_COMPARED = (tables.score_table, tables.gain_table)
_EXPERIMENTS = (
    Experiment(
        name="table1",
        title="Table 1: the six tasks with static word vectors, and with ELMo beside them",
        tasks=settings.ENGLISH, conditions=(STATIC, ELMO), shares=(1.0, 0.1), reference="static",
        tables=_COMPARED,
    ),
    Experiment(
        name="table2",
        title="Table 2: how the layers are weighted",
        tasks=_QA_NLI_SRL,
        conditions=(
            STATIC,
            Condition(name="top layer", overrides=("inputs.embeddings=top",)),
            _elmo("all layers, λ = 1", "inputs.layer_l2=1.0"),
            _elmo("all layers, λ = 0.001", "inputs.layer_l2=0.001"),
        ),
        reference="static", tables=_COMPARED,
    ),
    Experiment(
        name="table3",
        title="Table 3: ELMo at the input of the task model, at its output, or at both",
        tasks=_QA_NLI_SRL,
        conditions=(
            _elmo("input", "inputs.positions=input"),
            _elmo("input and output", "inputs.positions=both"),
            _elmo("output", "inputs.positions=output"),
        ),
        reference="input", tables=_COMPARED,
    ),
    Experiment(
        name="table4", title="Table 4: nearest neighbors in context", probe=NEIGHBOR_PROBE,
        tables=(
            lambda findings: probe_table(findings, NEIGHBOR_PROBE),
            lambda findings: example_table(findings, NEIGHBOR_PROBE),
        ),
    ),
    Experiment(
        name="table5", title="Table 5: word senses by the nearest centroid", probe=WSD_PROBE,
        tables=(lambda findings: probe_table(findings, WSD_PROBE),),
    ),
    Experiment(
        name="table6", title="Table 6: parts of speech by a linear classifier", probe=POS_PROBE,
        tables=(lambda findings: probe_table(findings, POS_PROBE),),
    ),
    Experiment(
        name="figure1", title="Figure 1: score over the number of labels",
        tasks=(settings.NLI, settings.SRL, settings.NER), conditions=(STATIC, ELMO),
        shares=(1.0, 0.1, 0.01, 0.5, 0.2, 0.05), reference="static",
        tables=(*_COMPARED, tables.curve_table), plot=plot_curves,
    ),
    Experiment(
        name="figure2", title="Figure 2: what the tasks make of the layers",
        tasks=settings.ENGLISH, conditions=(ELMO,), tables=(tables.mix_table, tables.score_table),
        plot=plot_mixes,
    ),
    Experiment(
        name="korean", title="Korean: static word vectors, and ELMo beside them",
        tasks=settings.KOREAN, conditions=(STATIC, ELMO), shares=(1.0, 0.1), reference="static",
        tables=_COMPARED, language="ko",
    ),
)  # fmt: skip
EXPERIMENTS = {experiment.name: experiment for experiment in _EXPERIMENTS}
"""By the name that a user types."""


def find_experiment(name: str) -> Experiment:
    """Return the experiment of this name.

    Raises:
        InputError: if there is none.
    """
    if name not in EXPERIMENTS:
        raise InputError(
            f"There is no experiment {name!r}; choose one of {', '.join(EXPERIMENTS)}."
        )
    return EXPERIMENTS[name]


def choose_tasks(experiment: Experiment, names: tuple[str, ...]) -> tuple[TaskSettings, ...]:
    """Return those of the experiment's tasks that are named; none named: all.

    Raises:
        InputError: for a name that the experiment does not have.
    """
    known = [settings.task for settings in experiment.tasks]
    for name in names:
        if name not in known:
            raise InputError(
                f"{experiment.name} has no task {name!r}; "
                + (f"choose of {', '.join(known)}." if known else "it trains none.")
            )
    return tuple(one for one in experiment.tasks if not names or one.task in names)
