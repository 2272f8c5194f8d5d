"""The experiments by name; `elmokit.experiments.definitions` has a module for each.

No heavy imports here: `elmokit experiment --help` reads this module.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from elmokit.errors import InputError

if TYPE_CHECKING:
    from elmokit.experiments.experiment import Experiment

EXPERIMENTS = [
    "table1", "table2", "table3", "table4", "table5", "table6", "figure1", "figure2", "korean",
]  # fmt: skip


def find_experiment(name: str) -> "Experiment":
    """Return the experiment of this name, or raise an `InputError` that lists all names."""
    if name not in EXPERIMENTS:
        names = ", ".join(EXPERIMENTS)
        raise InputError(f"There is no experiment {name!r}; choose one of {names}.")
    return import_module(f"elmokit.experiments.definitions.{name}").EXPERIMENT
