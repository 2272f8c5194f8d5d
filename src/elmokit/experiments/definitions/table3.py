"""Table 3: ELMo at the input of the task model, at its output, or at both."""

from elmokit.experiments.experiment import Experiment, elmo
from elmokit.experiments.results.tables import COMPARED
from elmokit.experiments.settings import NLI, QA, SRL

EXPERIMENT = Experiment(
    tasks=(QA, NLI, SRL),
    conditions=(
        elmo("input", "inputs.positions=input"),
        elmo("input and output", "inputs.positions=both"),
        elmo("output", "inputs.positions=output"),
    ),
    max_seeds=2,
    reference="input",
    tables=COMPARED,
)
