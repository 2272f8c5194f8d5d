"""An experiment: tasks and conditions, or a probe, and how to show the findings."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from elmokit.errors import InputError
from elmokit.experiments.plan import Condition
from elmokit.experiments.probe_plan import ProbeSettings
from elmokit.experiments.results.findings import Findings
from elmokit.experiments.results.tables import Table
from elmokit.experiments.settings import TaskSettings
from elmokit.tasks.inputs.settings import EmbeddingKind


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A table or figure of the paper."""

    name: str = ""
    """This and ``title``: as in the registry, which sets them."""
    title: str = ""
    tables: tuple[Callable[[Findings], Table], ...] = ()
    """In addition to the settings of the tasks, or the scores of the probe."""
    plot: Callable[[Findings, Path], bool] | None = None
    """Draws a plot; returns whether there was anything to draw."""
    tasks: tuple[TaskSettings, ...] = ()
    conditions: tuple[Condition, ...] = ()
    shares: tuple[float, ...] = (1.0,)
    """Shares of the labels, the most important first."""
    reference: str | None = None
    """Condition that the others are compared with."""
    language: str = "en"
    """Language of the default biLM."""
    probe: ProbeSettings | None = None
    """Measured instead of tasks."""

    def choose_tasks(self, names: tuple[str, ...]) -> tuple[TaskSettings, ...]:
        """Return the named tasks in the experiment's order; without names, all."""
        known = [settings.task for settings in self.tasks]
        for name in names:
            if name not in known:
                allowed = f"choose from {', '.join(known)}" if known else "it trains none"
                raise InputError(f"{self.name} has no task {name!r}; {allowed}.")
        return tuple(one for one in self.tasks if not names or one.task in names)


def reads(embeddings: EmbeddingKind, name: str, *, tasks: tuple[str, ...] = ()) -> Condition:
    """Return the condition that reads one kind of embeddings, in all tasks or these."""
    return Condition(name=name, overrides=(f"inputs.embeddings={embeddings}",), tasks=tasks)


STATIC = reads("static", "static")
ELMO = reads("elmo", "elmo")


def elmo(name: str, *overrides: str) -> Condition:
    """Return a condition with ELMo and further settings."""
    return Condition(name=name, overrides=(*ELMO.overrides, *overrides))
