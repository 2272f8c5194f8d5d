"""Korean: static word vectors, and ELMo beside them."""

from elmokit.experiments.experiment import ELMO, STATIC, Experiment
from elmokit.experiments.results.tables import COMPARED
from elmokit.experiments.settings import KOREAN

EXPERIMENT = Experiment(
    language="ko",
    tasks=KOREAN,
    conditions=(STATIC, ELMO),
    shares=(1.0, 0.1),
    reference="static",
    tables=COMPARED,
)
