"""Trained minus untrained."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from elmokit.metrics.accuracy import accuracy_of


@dataclass
class Score:
    name: str
    counts: np.ndarray = field(repr=False)


@pytest.fixture
def probe():
    from elmokit.probes.probe import Figure, Probe

    return Probe(
        find=lambda data, test: None, read=lambda files, tokenize, units: None,
        words=lambda data: set(), measure=lambda *given: (), columns={"a": "A", "b": "B"},
        note="", counts="counts",
        figures=(Figure("a", accuracy_of, slice(0, 2)), Figure("b", accuracy_of, slice(2, 4))),
    )  # fmt: skip


def counts(*right):
    """The first two units are those of a, the others those of b."""
    return np.array([[*right[:1], 1, 0, 0], [right[1], 1, 0, 0], [0, 0, right[2], 1]], "f8")


def test_layers_are_compared_with_the_same_layers_untrained(probe):
    from elmokit.probes.gains import gains_of

    scores = [
        Score("baseline", counts(1, 1, 1)), Score("layer 0", counts(1, 1, 0)),
        Score("layer 1", counts(1, 1, 1)), Score("random 1", counts(1, 0, 1)),
        Score("static", counts(1, 1, 1)),
    ]  # fmt: skip
    found = gains_of(probe, scores)
    assert [(one.name, one.untrained, one.figure) for one in found] == [
        ("layer 1", "random 1", "a"), ("layer 1", "random 1", "b"),
    ]  # fmt: skip
    assert [one.difference for one in found] == [50, 0]
    assert [one.num_units for one in found] == [2, 1]
    assert found[0].low < 0 < 50 < found[0].high


def test_several_untrained_bilms_are_averaged_and_widen_the_interval(probe):
    from elmokit.probes.gains import training_gains

    given = {"layer 1": [counts(1, 1, 1)], "random 1": [counts(1, 1, 1), counts(0, 0, 1)]}
    first, second = training_gains(probe, given)
    assert (first.difference, second.difference) == (50, 0)
    assert first.low < 0 < 50 < first.high
    assert (second.low, second.high) == (None, None)  # one unit, and both seeds are alike
    assert second.interval == "–"


def test_the_trained_bilm_is_given_and_only_the_untrained_ones_vary(probe):
    from elmokit.probes.gains import training_gains

    def same_in_every_unit(right):
        return np.array([[right, 100, right, 100]] * 5, "f8")

    untrained = [same_in_every_unit(right) for right in (40, 42, 44)]
    found = training_gains(probe, {"layer 1": [same_in_every_unit(50)], "random 1": untrained})[0]
    width = 2 * 4.303 * 2 * (1 / 3) ** 0.5  # t with 2 degrees of freedom
    assert found.high - found.low == pytest.approx(width, rel=0.1)
