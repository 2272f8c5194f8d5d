"""Table 5: word senses by the nearest centroid, and by the nearest annotated word."""

from functools import partial

from elmokit.experiments.experiment import Experiment
from elmokit.experiments.probe_plan import SENSES, ProbeSettings
from elmokit.experiments.results.probe_tables import tie_table, training_gain_table
from elmokit.probes.wsd import PROBE

EXPERIMENT = Experiment(
    probe=ProbeSettings(
        kind="wsd_probe",
        probe=PROBE,
        data=SENSES,
        usual_test_set="semeval2007",
        reference="first sense",
    ),
    tables=(partial(training_gain_table, probe=PROBE), partial(tie_table, probe=PROBE)),
)
