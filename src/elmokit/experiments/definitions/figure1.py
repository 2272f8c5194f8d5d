"""Figure 1: score over the number of labels."""

from elmokit.experiments.experiment import ELMO, STATIC, Experiment
from elmokit.experiments.results.plots import plot_curves
from elmokit.experiments.results.tables import COMPARED, curve_table
from elmokit.experiments.settings import NER, NLI, SRL

EXPERIMENT = Experiment(
    tasks=(NLI, SRL, NER),
    conditions=(STATIC, ELMO),
    shares=(1.0, 0.1, 0.3, 0.03, 0.01),
    max_seeds=3,
    reference="static",
    tables=(*COMPARED, curve_table),
    plot=plot_curves,
)
