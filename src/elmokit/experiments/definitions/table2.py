"""Table 2: how the layers are weighted."""

from elmokit.experiments.experiment import STATIC, Experiment, elmo
from elmokit.experiments.plan import Condition
from elmokit.experiments.results.tables import COMPARED
from elmokit.experiments.settings import NLI, SRL

DEFAULT = "all layers, λ = 0.001"
"""As in table 1, whose tuned rate all of them get."""

EXPERIMENT = Experiment(
    tasks=(NLI, SRL),
    conditions=(
        STATIC,
        Condition(name="top layer", overrides=("inputs.embeddings=top",), tuned_as=DEFAULT),
        elmo("all layers, λ = 1", "inputs.layer_l2=1.0", tuned_as=DEFAULT),
        elmo(DEFAULT, "inputs.layer_l2=0.001"),
    ),
    max_seeds=2,
    reference="static",
    tables=COMPARED,
)
