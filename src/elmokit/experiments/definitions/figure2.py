"""Figure 2: what the tasks make of the layers."""

from elmokit.experiments.experiment import ELMO, Experiment
from elmokit.experiments.results.mix_tables import mix_table
from elmokit.experiments.results.plots import plot_mixes
from elmokit.experiments.results.tables import score_table
from elmokit.experiments.settings import ENGLISH

EXPERIMENT = Experiment(
    tasks=ENGLISH,
    conditions=(ELMO,),
    tables=(mix_table, score_table),
    plot=plot_mixes,
)
