"""Coreference on GUM: table 1's comparison with 30 dev documents, of which LitBank has ten."""

from dataclasses import replace

from elmokit.experiments.experiment import ELMO, STATIC, Experiment
from elmokit.experiments.results.tables import COMPARED
from elmokit.experiments.settings import COREF

EXPERIMENT = Experiment(
    tasks=(
        replace(COREF, dataset="coref-en-gum", content="GUM (OntoGUM) in the CoNLL-2012 format"),
    ),
    conditions=(STATIC, ELMO),
    shares=(1.0, 0.1),
    reference="static",
    tables=COMPARED,
)
