"""What training gave a biLM: each layer's score minus that of the same layer, untrained."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from elmokit.metrics.bootstrap import RunCounts, bootstrap_gain
from elmokit.metrics.significance import Counts
from elmokit.probes.probe import Probe
from elmokit.probes.vector_sources import TRAINED, UNTRAINED


@dataclass(frozen=True, kw_only=True)
class TrainingGain:
    """The difference between a trained layer and the same one untrained, in points."""

    name: str
    """Of the trained layer."""
    untrained: str
    """Name of the other."""
    figure: str
    """Field of the score, one of `Probe.figures`."""
    difference: float
    low: float | None
    """Lower end of the interval (`bootstrap.CONFIDENCE`); none: it has no ends."""
    high: float | None
    num_units: int
    """What was drawn: sentences of a test set, documents of SemCor, lemmas, pairs."""

    @property
    def interval(self) -> str:
        """The interval as text."""
        if self.low is None or self.high is None:
            return "–"
        return f"[{self.low:+.2f}, {self.high:+.2f}]"


def gains_of(probe: Probe, scores: Sequence[Any]) -> list[TrainingGain]:
    """Return the gains of all layers with an untrained counterpart among the scores."""
    return training_gains(probe, {one.name: [getattr(one, probe.counts)] for one in scores})


def training_gains(probe: Probe, counts: Mapping[str, Sequence[Counts]]) -> list[TrainingGain]:
    """Return the gains from the counts of each representation, one for each seed of random weights.

    The intervals are over units, and over the seeds of random weights if there are several. The
    trained biLM is the one that is examined, no draw of seeds.
    """
    found = []
    for name, own in counts.items():
        first, _, layer = name.partition(" ")
        untrained = f"{UNTRAINED} {layer}"
        if first != TRAINED or untrained not in counts:
            continue
        for figure in probe.figures:
            trained_runs, untrained_runs = (
                np.stack([figure.counts(run) for run in side]) for side in (own, counts[untrained])
            )
            runs = RunCounts(trained_runs, untrained_runs, new_is_fixed=True)
            test = bootstrap_gain(runs, score=figure.score, seed=0)
            found.append(TrainingGain(
                name=name, untrained=untrained, figure=figure.name, difference=test.difference,
                low=test.low, high=test.high, num_units=runs.new.shape[1],
            ))  # fmt: skip
    return found
