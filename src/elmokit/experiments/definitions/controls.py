"""Controls of table 1: what else could explain the gain of ELMo.

Every condition is tested against ``elmo``. ``elmo`` and ``static`` share runs with table 1.
"""

from elmokit.experiments.experiment import ELMO, STATIC, Experiment, control
from elmokit.experiments.results.tables import COMPARED
from elmokit.experiments.settings import ENGLISH

EXPERIMENT = Experiment(
    tasks=ENGLISH,
    conditions=(
        ELMO,
        STATIC,
        control(
            "static_output", "static, at the output too", tuned_as="static", tasks=("nli", "qa")
        ),
        control("static_projected", "static, as wide as elmo", tuned_as="static"),
        control("random", "untrained biLM", tuned_as="elmo"),
        control("layer0", "layer 0", tuned_as="elmo"),
        control("average", "average of the layers", tuned_as="elmo"),
    ),
    reference="elmo",
    tables=COMPARED,
)
