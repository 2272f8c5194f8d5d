import pytest

from elmokit.experiments.comparison import (
    Cell,
    compare,
    error_reduction,
    share_that_reaches,
)

from ...builders.experiment_runs import result


def cell(condition, *results):
    return Cell("nli", "pairs", 1.0, condition, dict(enumerate(results)))


def test_error_reduction_is_the_gain_as_a_share_of_what_is_missing_to_100():
    # SQuAD and SRL of table 1 in the paper
    assert error_reduction(81.1, 85.8) == pytest.approx(24.9, abs=0.05)
    assert error_reduction(81.4, 84.6) == pytest.approx(17.2, abs=0.05)
    assert error_reduction(50.0, 40.0) == pytest.approx(-20.0)
    assert error_reduction(100.0, 100.0) is None


def test_the_p_value_is_small_for_a_clear_difference_and_1_for_none():
    better, worse = [1] * 40, [0] * 20 + [1] * 20
    clear = compare(cell("elmo", result(right=better)), cell("static", result(right=worse)))
    assert clear.p_value < 0.001
    assert 20 < clear.low < 50 < clear.high < 80  # 50 ± 16 points
    same = compare(cell("elmo", result(right=worse)), cell("static", result(right=worse)))
    assert same.p_value == 1.0


def test_examples_of_one_unit_are_drawn_together():
    better, worse = [1] * 24 + [0] * 16, [0] * 40
    apart, together = (
        compare(
            cell("elmo", result(right=better, units=units)),
            cell("static", result(right=worse, units=units)),
        )
        for units in ((), [n // 8 for n in range(40)])
    )
    assert (apart.num_units, together.num_units) == (40, 5)
    assert apart.gain == together.gain
    assert together.p_value > 20 * apart.p_value


def test_epochs_to_the_best_of_the_reference():
    ours = cell("elmo", result(right=[1], epochs=[40, 55, 60]), result(right=[1], epochs=[56]))
    theirs = cell("static", result(right=[1], epochs=[50, 20]), result(right=[1], epochs=[56]))
    assert compare(ours, theirs).epochs_to_reference == 1.5  # epochs 2 and 1 reach 53
    never = cell("elmo", result(right=[1], epochs=[40]), result(right=[1], epochs=[56]))
    assert compare(never, theirs).epochs_to_reference is None


def test_the_share_that_reaches_a_score_lies_on_a_line_over_logarithms():
    points = [(1.0, 70.0), (0.01, 40.0), (0.1, 60.0)]
    assert share_that_reaches(points, 50.0) == pytest.approx(10**-1.5)
    assert share_that_reaches(points, 60.0) == pytest.approx(0.1)
    assert share_that_reaches(points, 30.0) == pytest.approx(0.01)
    assert share_that_reaches(points, 70.5) is None
