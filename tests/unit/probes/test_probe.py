"""Probes by name."""

import numpy as np
import pytest

from elmokit.errors import InputError
from elmokit.metrics.task_scores import accuracy_of
from elmokit.probes.probe import Figure, Probe, run_probe, training_gains

from ...builders.task_models import toy_model


def counts(*right):
    """The first two units are those of a, the others those of b."""
    return np.array([[*right[:1], 1, 0, 0], [right[1], 1, 0, 0], [0, 0, right[2], 1]], "f8")


def test_layers_are_compared_with_the_same_layers_untrained():
    probe = Probe(
        find=lambda data, test: None, read=lambda files, tokenize, units: None,
        words=lambda data: set(), measure=lambda *arguments: (), columns={"a": "A", "b": "B"},
        note="", counts="counts",
        figures=(Figure("a", accuracy_of, slice(0, 2)), Figure("b", accuracy_of, slice(2, 4))),
    )  # fmt: skip
    scores = {
        "baseline": [counts(1, 1, 1)], "layer 0": [counts(1, 1, 0)],
        "layer 1": [counts(1, 1, 1)], "random 1": [counts(1, 0, 1)], "static": [counts(1, 1, 1)],
    }  # fmt: skip
    gains = training_gains(probe, scores)
    assert [(one.name, one.untrained, one.figure) for one in gains] == [
        ("layer 1", "random 1", "a"), ("layer 1", "random 1", "b"),
    ]  # fmt: skip
    assert [(one.difference, one.num_units) for one in gains] == [(50, 2), (0, 1)]
    assert gains[0].low < 0 < 50 < gains[0].high


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("syntax", {}), ("pos", {"test": "semeval2007"}), ("pos", {"units": "eojeol"}),
        ("wic", {"units": "words"}), ("pos", {"layers": 7}), ("pos", {"precision": "fp8"}),
    ],
)  # fmt: skip
def test_what_cannot_be_probed_is_told(tmp_path, name, options):
    toy_model().save(tmp_path / "model")
    with pytest.raises(InputError):
        run_probe(name, tmp_path / "data", str(tmp_path / "model"), **options)
