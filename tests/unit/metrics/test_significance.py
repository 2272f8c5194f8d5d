"""Paired tests and the spread over seeds."""

from itertools import product

import numpy as np
import pytest

from elmokit.metrics.accuracy import accuracy_of
from elmokit.metrics.significance import approximate_randomization, holm, summarize_seeds
from elmokit.metrics.span_f1 import f1_of


def right(*hits):
    return np.array([[hit, 1] for hit in hits], dtype=float)


def test_randomization_approaches_the_exact_test():
    a = np.array([[2, 3, 3], [1, 1, 2], [0, 1, 2], [4, 4, 5], [1, 2, 1]], dtype=float)
    b = np.array([[1, 3, 3], [1, 2, 2], [1, 1, 2], [1, 4, 5], [0, 2, 1]], dtype=float)
    observed = float(f1_of(a.sum(0)) - f1_of(b.sum(0)))
    exact = []
    for coins in product([False, True], repeat=5):
        swap = np.array(coins)[:, None]
        one, other = np.where(swap, b, a).sum(0), np.where(swap, a, b).sum(0)
        exact.append(abs(float(f1_of(one) - f1_of(other))) >= abs(observed) - 1e-9)
    result = approximate_randomization(a, b, f1_of, num_rounds=20_000, seed=1)
    assert result.difference == pytest.approx(observed)
    assert result.p_value == pytest.approx(np.mean(exact), abs=0.015)


def test_a_seed_fixes_the_result_and_sides_can_be_swapped():
    generator = np.random.default_rng(5)
    a, b = (right(*generator.integers(0, 2, 60)) for _ in range(2))
    first = approximate_randomization(a, b, accuracy_of, num_rounds=300, seed=3)
    assert approximate_randomization(a, b, accuracy_of, num_rounds=300, seed=3) == first
    swapped = approximate_randomization(b, a, accuracy_of, num_rounds=300, seed=3)
    assert (swapped.difference, swapped.p_value) == (-first.difference, first.p_value)
    assert approximate_randomization(a, a, accuracy_of, num_rounds=50, seed=0).p_value == 1
    clear = approximate_randomization(
        right(*[1] * 200), right(*[0, 1] * 100), accuracy_of, num_rounds=99, seed=0
    )
    assert (clear.difference, clear.p_value) == (50, 1 / 100)  # r = 0


def test_seeds_by_hand():
    # mean 2, squares 1 + 0 + 1, divisor 2
    summary = summarize_seeds([1.0, 2.0, 3.0])
    assert (summary.mean, summary.sd, summary.num_seeds) == (2, 1, 3)
    assert summarize_seeds([5.0]).sd is None


def test_holm_by_hand():
    # 4 · 0.01; 3 · 0.015; 2 · 0.02, but not below the one before; 0.5
    assert holm([0.5, 0.01, 0.02, 0.015]) == pytest.approx([0.5, 0.04, 0.045, 0.045])
    assert holm([0.4, 0.9]) == pytest.approx([0.8, 0.9])
    assert holm([0.01, 0.02], num_tests=6) == pytest.approx([0.06, 0.1])  # four are missing
    assert holm([]) == []


@pytest.mark.parametrize(("a", "b"), [(right(1), right(1, 0)), (np.zeros((0, 2)),) * 2])
def test_systems_on_other_examples_are_not_compared(a, b):
    with pytest.raises(ValueError, match=r"\(examples, k\)"):
        approximate_randomization(a, b, accuracy_of, seed=0)
