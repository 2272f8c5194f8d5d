"""Controls of table 1: what else could explain the gain of ELMo.

Every condition is tested against ``elmo``. ``elmo`` and ``static`` share runs with table 1.
"""

from elmokit.experiments.experiment import ELMO, STATIC, Experiment, reads
from elmokit.experiments.results.tables import COMPARED
from elmokit.experiments.settings import ENGLISH

EXPERIMENT = Experiment(
    tasks=ENGLISH,
    conditions=(
        ELMO,
        STATIC,
        reads("static_output", "static, at the output too", tasks=("nli", "qa")),
        reads("static_projected", "static, as wide as elmo"),
        reads("random", "untrained biLM"),
        reads("layer0", "layer 0"),
        reads("average", "average of the layers"),
    ),
    reference="elmo",
    tables=COMPARED,
)
