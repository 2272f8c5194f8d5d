"""Table 5: word senses by the nearest centroid."""

from elmokit.experiments.experiment import Experiment
from elmokit.experiments.probe_plan import SENSES, ProbeSettings
from elmokit.probes.wsd import PROBE

EXPERIMENT = Experiment(
    probe=ProbeSettings(
        kind="wsd_probe",
        probe=PROBE,
        data=SENSES,
        usual_test_set="semeval2007",
        reference="first sense",
    ),
)
