"""The hierarchical bootstrap against a slow one, Student's t, and data whose truth is known."""

import math
import statistics
from itertools import product

import numpy as np
import pytest
from scipy import stats

from elmokit.metrics import bootstrap
from elmokit.metrics.bootstrap import (
    RunCounts,
    approximate_randomization,
    blocks,
    bootstrap_gain,
    holm,
    summarize_seeds,
)
from elmokit.metrics.task_scores import accuracy_of, f1_of


def same_in_every_unit(scores, *, units=5):
    """Counts of runs with these accuracies in percent, whatever units are drawn."""
    return np.array([[[score, 100.0]] * units for score in scores])


def test_without_variance_over_units_the_interval_is_student_s():
    new, base = [71.0, 70.0, 74.0], [60.0, 62.0, 61.0]
    found = bootstrap_gain(
        RunCounts(same_in_every_unit(new), same_in_every_unit(base)),
        score=accuracy_of, num_rounds=100_000, seed=1,
    )  # fmt: skip
    welch = stats.ttest_ind(new, base, equal_var=False)
    interval = welch.confidence_interval()
    gain = statistics.mean(new) - statistics.mean(base)
    assert found.difference == pytest.approx(gain)
    width = interval.high - interval.low
    assert found.low == pytest.approx(interval.low, abs=0.02 * width)
    assert found.high == pytest.approx(interval.high, abs=0.02 * width)
    assert found.p_value == pytest.approx(welch.pvalue, abs=0.002)


def test_a_fixed_model_has_no_error_from_seeds():
    given, drawn = same_in_every_unit([50.0]), same_in_every_unit([40.0, 42.0, 44.0])
    found = bootstrap_gain(
        RunCounts(given, drawn, new_is_fixed=True), score=accuracy_of, num_rounds=100_000, seed=1
    )  # fmt: skip
    half = 4.303 * 2.0 * (1 / 3) ** 0.5  # t with 2 degrees of freedom
    assert found.high - found.low == pytest.approx(2 * half, rel=0.04)


def test_another_gain_shifts_the_interval_and_widens_it_by_its_own_error():
    gain = RunCounts(same_in_every_unit([71.0, 70.0, 74.0]), same_in_every_unit([60.0, 62.0, 61.0]))
    steady = RunCounts(same_in_every_unit([9.0, 9.0]), same_in_every_unit([7.0, 7.0]))
    options = {"score": accuracy_of, "num_rounds": 20_000, "seed": 1}
    alone = bootstrap_gain(gain, **options)
    shifted = bootstrap_gain(gain, steady, **options)
    for end in ("difference", "low", "high"):
        assert getattr(shifted, end) == pytest.approx(getattr(alone, end) - 2)
    twice = bootstrap_gain(gain, gain, **options)
    assert (twice.difference, twice.p_value) == (0, pytest.approx(1, abs=0.03))
    assert twice.low == pytest.approx(-twice.high, rel=0.05)
    # sums of two t distributions with about 3 degrees of freedom: wider by 1.41 in the middle
    assert 1.3 < (twice.high - twice.low) / (alone.high - alone.low) < 1.5


def test_blocks_bound_memory_and_change_nothing(monkeypatch):
    assert list(blocks(10, 1 << 20)) == [2, 2, 2, 2, 2]
    assert list(blocks(3, 1 << 22)) == [1, 1, 1]
    world = World(3, (3, 2), 30, 5, 0.02)
    counts = [world.runs(number, 0.5, np.zeros(30)) for number in range(2)]
    tests = []
    for values in (1 << 21, 30 * 64):
        monkeypatch.setattr(bootstrap, "_BLOCK_VALUES", values)
        options = {"num_rounds": 200, "seed": 4}
        tests.append((
            bootstrap_gain(RunCounts(*counts), score=accuracy_of, **options),
            approximate_randomization(*(one[0] for one in counts), accuracy_of, **options),
        ))  # fmt: skip
    assert tests[0] == tests[1]


def test_one_unit_and_no_variance_over_seeds_say_nothing():
    one, other = np.array([[[9.0, 10.0]]]), np.array([[[1.0, 10.0]]])
    for base in (other, np.concatenate([other, other])):
        found = bootstrap_gain(RunCounts(one, base), score=accuracy_of, seed=1)
        assert (found.difference, found.low, found.high, found.p_value) == (80, None, None, 1)
    seeds = np.array([[[1.0, 10.0]], [[3.0, 10.0]]])
    found = bootstrap_gain(RunCounts(one, seeds), score=accuracy_of, seed=1)
    assert found.low < found.difference < found.high  # over seeds alone
    assert found.p_value < 1


@pytest.mark.parametrize(("num_units", "p"), [(2, 0.5), (5, 0.0625), (20, 2 / 10_001)])
def test_units_that_all_agree_say_no_more_than_their_signs(num_units, p):
    right, wrong = np.ones((1, num_units, 2)), np.tile([0.0, 1.0], (1, num_units, 1))
    found = bootstrap_gain(RunCounts(right, wrong), score=accuracy_of, seed=1)
    assert (found.difference, found.low, found.high) == (100, None, None)
    assert found.p_value == pytest.approx(p, abs=1e-4)


class World:
    """Right answers of many runs on many units, with a known expected gain of 0 or more."""

    def __init__(self, seed, seeds, units, per_unit, sd_of_seeds, *, gain=0.0):
        self.generator = np.random.default_rng(seed)
        self.seeds, self.units, self.per_unit = seeds, units, per_unit
        self.sd_of_seeds, self.gain = np.broadcast_to(sd_of_seeds, 2), gain

    def runs(self, number, mean, hardness):
        draw = self.generator
        own = draw.normal(0, 0.6, self.units)  # what this condition finds hard
        per_seed = draw.normal(0, self.sd_of_seeds[number], self.seeds[number])
        rates = mean + 0.15 * np.tanh(hardness + own)[None] + per_seed[:, None]
        right = draw.binomial(self.per_unit, np.clip(rates, 0, 1))
        return np.stack([right, np.full_like(right, self.per_unit)], axis=-1).astype(float)

    def test(self, number):
        hardness = self.generator.normal(0, 1, self.units)
        base = self.runs(1, 0.5, hardness)
        new = self.runs(0, 0.5 + self.gain / 100, hardness)
        return bootstrap_gain(RunCounts(new, base), score=accuracy_of, num_rounds=400, seed=number)


WORLDS = {
    "seeds decide": ((3, 3), 300, 1, 0.03),
    "data decide": ((5, 5), 300, 1, 0.0),
    "ten documents": ((3, 3), 10, 60, 0.01),
    "few seeds of a control": ((5, 2), 80, 5, 0.02),
    "two seeds each, one condition varies": ((2, 2), 300, 1, (0.1, 0.005)),
    "the two seeds of a control vary most": ((5, 2), 300, 5, (0.007, 0.03)),
    "two and three seeds": ((3, 2), 300, 5, (0.044, 0.1)),
}


@pytest.mark.parametrize("name", WORLDS)
def test_intervals_cover_the_true_gain_and_none_is_found_without_one_too_often(name):
    world = World(8, *WORLDS[name], gain=4.0)
    tests = [world.test(number) for number in range(400)]
    covered = np.mean([one.low <= 4.0 <= one.high for one in tests])
    assert covered >= 0.915  # 95 % less three standard errors
    assert np.mean([one.difference for one in tests]) == pytest.approx(4.0, abs=0.5)
    nothing = World(7, *WORLDS[name])
    false = [nothing.test(number).p_value < 0.05 for number in range(400)]
    assert 0.005 <= np.mean(false) <= 0.085


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
    assert math.isnan(summarize_seeds([5.0, math.inf]).sd)


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
