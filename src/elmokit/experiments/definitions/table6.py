"""Table 6: parts of speech by a linear classifier."""

from elmokit.experiments.experiment import Experiment
from elmokit.experiments.probe_plan import POS_SENTENCES, ProbeSettings
from elmokit.probes.pos import PROBE

EXPERIMENT = Experiment(
    name="table6",
    title="Table 6: parts of speech by a linear classifier",
    probe=ProbeSettings(
        kind="pos_probe",
        probe=PROBE,
        dataset="ud-en-ewt",
        content="UD English-EWT, CoNLL-U; one train… and one dev… file",
        max_train=POS_SENTENCES,
        reference="static",
    ),
)
