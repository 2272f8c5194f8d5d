"""The experiments by name. Each is a module of `definitions` with an `Experiment` ``EXPERIMENT``.

This module stays free of heavy imports: `elmokit experiment --help` reads it.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from elmokit.errors import InputError

if TYPE_CHECKING:
    from elmokit.experiments.experiment import Experiment

EXPERIMENTS = [
    "table1",
    "table2",
    "table3",
    "table4",
    "table5",
    "table6",
    "figure1",
    "figure2",
    "korean",
]


def find_experiment(name: str) -> "Experiment":
    """Return the experiment of this name.

    Raises:
        InputError: if there is none.
    """
    if name not in EXPERIMENTS:
        raise InputError(
            f"There is no experiment {name!r}; choose one of {', '.join(EXPERIMENTS)}."
        )
    return import_module(f"elmokit.experiments.definitions.{name}").EXPERIMENT
