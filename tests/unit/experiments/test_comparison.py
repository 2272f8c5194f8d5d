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
