"""Table 4: nearest neighbors in context."""

from functools import partial

from elmokit.experiments.experiment import Experiment
from elmokit.experiments.probe_plan import BILM, EXAMPLES, RANDOM, SENSES, STATIC, ProbeSettings
from elmokit.experiments.results.probe_tables import example_table, training_gain_table
from elmokit.probes.sense_neighbors import PROBE

EXPERIMENT = Experiment(
    probe=ProbeSettings(
        kind="neighbor_probe",
        probe=PROBE,
        data=SENSES,
        reference="layer 0",
        families=(BILM, STATIC, RANDOM, EXAMPLES),
    ),
    tables=(partial(training_gain_table, probe=PROBE), example_table),
)
