"""The experiments by name; `elmokit.experiments.definitions` has a module for each.

No heavy imports here: `elmokit experiment --help` reads this module.
"""

from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING

from elmokit.errors import InputError

if TYPE_CHECKING:
    from elmokit.experiments.experiment import Experiment

EXPERIMENTS = {
    "table1": "Table 1: the six tasks with static word vectors, and with ELMo beside them",
    "table2": "Table 2: how the layers are weighted",
    "table3": "Table 3: ELMo at the input of the task model, at its output, or at both",
    "table4": "Table 4: nearest neighbors in context",
    "table5": "Table 5: word senses by the nearest centroid",
    "table6": "Table 6: parts of speech by a linear classifier",
    "figure1": "Figure 1: score over the number of labels",
    "figure1_korean": "Figure 1 in Korean: score over the number of labels",
    "figure2": "Figure 2: what the tasks make of the layers",
    "controls": "Controls of table 1: what else could explain the gain of ELMo",
    "gum": "Coreference on GUM: static word vectors, and ELMo beside them",
    "korean": "Korean: static word vectors, and ELMo beside them",
}
"""Name -> title."""


def find_experiment(name: str) -> "Experiment":
    """Return the experiment of this name, or raise an `InputError` that lists all names."""
    if name not in EXPERIMENTS:
        raise InputError(
            f"There is no experiment {name!r}; choose one of {', '.join(EXPERIMENTS)}."
        )
    definition = import_module(f"elmokit.experiments.definitions.{name}").EXPERIMENT
    return replace(definition, name=name, title=EXPERIMENTS[name])
