"""Table 5: word senses by the nearest centroid."""

from elmokit.experiments.experiment import Experiment
from elmokit.experiments.probe_plan import SENSE_FOLDER, ProbeSettings
from elmokit.probes.wsd import PROBE

EXPERIMENT = Experiment(
    name="table5",
    title="Table 5: word senses by the nearest centroid",
    probe=ProbeSettings(
        kind="wsd_probe",
        probe=PROBE,
        dataset="wsd-en",
        content=SENSE_FOLDER,
        usual_test_set="semeval2007",
        reference="first sense",
    ),
)
