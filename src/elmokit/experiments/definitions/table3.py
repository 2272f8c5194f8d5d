"""Table 3: ELMo at the input of the task model, at its output, or at both."""

from elmokit.experiments.experiment import Experiment, elmo
from elmokit.experiments.results.tables import COMPARED
from elmokit.experiments.settings import NLI, QA, SRL

BOTH = "input and output"
"""As in table 1, except in semantic roles; all of them get its tuned rate."""

EXPERIMENT = Experiment(
    tasks=(QA, NLI, SRL),
    conditions=(
        elmo("input", "inputs.positions=input", tuned_as=BOTH),
        elmo(BOTH, "inputs.positions=both"),
        elmo("output", "inputs.positions=output", tuned_as=BOTH),
    ),
    max_seeds=2,
    reference="input",
    tables=COMPARED,
)
