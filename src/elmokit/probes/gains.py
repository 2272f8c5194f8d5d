"""What training gave a biLM: each layer's score minus that of the same layer, untrained.

The interval is over the units that are scored, such as sentences or documents, and not over random
weights: the counts of several untrained biLMs are summed first.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from elmokit.metrics.bootstrap import DifferenceInterval, bootstrap_difference
from elmokit.metrics.significance import Counts
from elmokit.probes.probe import Probe
from elmokit.probes.vector_sources import TRAINED, UNTRAINED


@dataclass(frozen=True, kw_only=True)
class Gain:
    """The difference between a trained layer and the same one untrained."""

    name: str
    """Of the trained layer."""
    untrained: str
    """Name of the other."""
    figure: str
    """Field of the score, one of `Probe.figures`."""
    interval: DifferenceInterval


def gains_of(probe: Probe, scores: Sequence[Any]) -> list[Gain]:
    """Return the gains of all layers with an untrained counterpart among the scores."""
    return training_gains(probe, {one.name: [getattr(one, probe.counts)] for one in scores})


def training_gains(probe: Probe, counts: Mapping[str, Sequence[Counts]]) -> list[Gain]:
    """Return the gains from the counts of each representation, one per seed of untrained biLMs.

    A biLM that is not random has the same counts with every seed, and is given once.
    """
    found = []
    for name, (own, *_) in counts.items():
        first, _, layer = name.partition(" ")
        others = counts.get(f"{UNTRAINED} {layer}") if first == TRAINED else None
        if others is None:
            continue
        ours, theirs = own * len(others), np.sum(others, axis=0)
        found += [
            Gain(
                name=name, untrained=f"{UNTRAINED} {layer}", figure=figure.name,
                interval=bootstrap_difference(
                    figure.counts(ours), figure.counts(theirs), figure.score, seed=0
                ),
            )
            for figure in probe.figures
        ]  # fmt: skip
    return found
