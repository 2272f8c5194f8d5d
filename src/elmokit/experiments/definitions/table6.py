"""Table 6: parts of speech by a linear classifier."""

from elmokit.experiments.experiment import Experiment
from elmokit.experiments.probe_plan import POS_SENTENCES, DataFolder, ProbeSettings
from elmokit.probes.pos import PROBE

EXPERIMENT = Experiment(
    probe=ProbeSettings(
        kind="pos_probe",
        probe=PROBE,
        data=DataFolder("ud-en-ewt", "UD English-EWT, CoNLL-U; one train… and one dev… file"),
        max_train=POS_SENTENCES,
        reference="static",
    ),
)
