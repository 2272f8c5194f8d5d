"""The interval of a difference."""

import numpy as np
import pytest

from elmokit.errors import InputError
from elmokit.metrics.accuracy import accuracy_of
from elmokit.metrics.bootstrap import bootstrap_difference


def counts(right, size=1):
    return np.stack([np.array(right, "f8"), np.full(len(right), float(size))], axis=1)


def test_the_interval_is_that_of_the_binomial_where_one_system_is_always_right():
    random = np.random.default_rng(0)
    wrong = (random.random(400) < 0.2).astype(float)
    found = bootstrap_difference(counts(np.ones(400)), counts(1 - wrong), accuracy_of, seed=1)
    share = wrong.mean()
    deviation = 100 * (share * (1 - share) / 400) ** 0.5
    assert found.difference == pytest.approx(100 * share)
    assert found.low == pytest.approx(100 * share - 1.96 * deviation, abs=0.3)
    assert found.high == pytest.approx(100 * share + 1.96 * deviation, abs=0.3)
    assert found.num_units == 400


def test_equal_systems_differ_nowhere_and_scale_does_not_matter():
    a, b = counts([1, 0, 1, 1]), counts([0, 0, 1, 1])
    same = bootstrap_difference(a, a, accuracy_of, seed=0)
    assert (same.difference, same.low, same.high) == (0, 0, 0)
    assert bootstrap_difference(a, b, accuracy_of, seed=0) == bootstrap_difference(
        3 * a, 3 * b, accuracy_of, seed=0
    )


def test_rounds_in_several_blocks_are_all_there(monkeypatch):
    from elmokit.metrics import bootstrap

    monkeypatch.setattr(bootstrap, "_BLOCK_VALUES", 12)
    drawn = []

    def score(totals):
        drawn.append(np.atleast_2d(totals).shape[0])
        return accuracy_of(totals)

    a, b = counts([1, 0, 1]), counts([0, 0, 1])
    bootstrap_difference(a, b, score, num_rounds=10, seed=0)
    assert sum(drawn[:-2]) == 20


@pytest.mark.parametrize(
    ("b", "rounds", "message"),
    [
        (counts([1, 0]), 10, r"\(units, k\).*\(3, 2\) and \(2, 2\)"),
        (counts([1, 0, 1]), 0, "`num_rounds` .* 0"),
    ],
)
def test_what_cannot_be_drawn_is_told(b, rounds, message):
    with pytest.raises(InputError, match=message):
        bootstrap_difference(counts([1, 1, 0]), b, accuracy_of, num_rounds=rounds, seed=0)
