"""Table 1: the six tasks with static word vectors, and with ELMo beside them."""

from elmokit.experiments.experiment import ELMO, STATIC, Experiment
from elmokit.experiments.results.tables import COMPARED
from elmokit.experiments.settings import ENGLISH

EXPERIMENT = Experiment(
    tasks=ENGLISH,
    conditions=(STATIC, ELMO),
    shares=(1.0, 0.1),
    reference="static",
    tables=COMPARED,
)
