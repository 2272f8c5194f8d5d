import pytest

from elmokit.experiments.results.comparison import (
    Cell,
    collect,
    compare,
    error_reduction,
    share_that_reaches,
)

from ....builders.experiment_runs import planned, result


def cell(condition, *results):
    return Cell("nli", "pairs", 1.0, condition, dict(enumerate(results)))


def test_error_reduction_is_the_gain_as_a_share_of_what_is_missing_to_100():
    # SQuAD and SRL of table 1 in the paper
    assert error_reduction(81.1, 85.8) == pytest.approx(24.9, abs=0.05)
    assert error_reduction(81.4, 84.6) == pytest.approx(17.2, abs=0.05)
    assert error_reduction(50.0, 40.0) == pytest.approx(-20.0)
    assert error_reduction(100.0, 100.0) is None


def test_mean_sd_and_gain_by_hand():
    ours = cell("elmo", result(70.0, right=[1, 1]), result(74.0, right=[1, 1]))
    theirs = cell("static", result(60.0, right=[1, 0]), result(62.0, right=[0, 1]))
    assert ours.summary.mean == 72.0
    assert ours.summary.sd == pytest.approx(8**0.5)  # (2² + 2²) / (2 - 1)
    found = compare(ours, theirs)
    assert found.gain == 11.0  # of 10 and 12
    assert found.gain_sd == pytest.approx(2**0.5)
    assert found.error_reduction == pytest.approx(100 * 11 / 39)
    assert found.seeds == (0, 1)


def test_only_seeds_that_both_arms_have_are_compared():
    ours = cell("elmo", result(70.0, right=[1]), result(99.0, right=[1]))
    theirs = cell("static", result(60.0, right=[0]))
    found = compare(ours, theirs)
    assert (found.seeds, found.gain, found.gain_sd) == ((0,), 10.0, None)
    assert compare(ours, Cell("nli", "pairs", 1.0, "static", {5: result(right=[1])})) is None


def test_the_p_value_is_small_for_a_clear_difference_and_1_for_none():
    better, worse = [1] * 40, [0] * 20 + [1] * 20
    clear = compare(cell("elmo", result(right=better)), cell("static", result(right=worse)))
    assert clear.p_value < 0.001
    same = compare(cell("elmo", result(right=worse)), cell("static", result(right=worse)))
    assert same.p_value == 1.0


def test_more_seeds_of_the_same_answers_make_a_difference_no_surer():
    ours, theirs = result(right=[1] * 6 + [0] * 6), result(right=[0] * 3 + [1] * 3 + [0] * 6)
    one = compare(cell("elmo", ours), cell("static", theirs))
    many = compare(cell("elmo", *[ours] * 5), cell("static", *[theirs] * 5))
    assert many.p_value == pytest.approx(one.p_value, abs=0.02)  # 2 of 8 outcomes: 0.25
    assert one.p_value == pytest.approx(0.25, abs=0.02)


def test_epochs_to_the_best_of_the_reference():
    ours = cell("elmo", result(right=[1], epochs=[40, 55, 60]), result(right=[1], epochs=[56]))
    theirs = cell("static", result(50.0, right=[1]), result(56.0, right=[1]))
    assert compare(ours, theirs).epochs_to_reference == 1.5  # epochs 2 and 1
    never = cell("elmo", result(right=[1], epochs=[40]), result(right=[1], epochs=[56]))
    assert compare(never, theirs).epochs_to_reference is None


def test_arms_of_different_tasks_are_not_compared():
    other = Cell("nli", "pairs", 0.1, "static", {0: result(right=[1])})
    with pytest.raises(ValueError, match=r"\('nli', .*\('nli', 'pairs', 0\.1\)"):
        compare(cell("elmo", result(right=[1])), other)


def test_the_share_that_reaches_a_score_lies_on_a_line_over_logarithms():
    points = [(1.0, 70.0), (0.01, 40.0), (0.1, 60.0)]
    assert share_that_reaches(points, 50.0) == pytest.approx(10**-1.5)
    assert share_that_reaches(points, 60.0) == pytest.approx(0.1)
    assert share_that_reaches(points, 30.0) == 0.01
    assert share_that_reaches(points, 70.5) is None


def test_results_are_collected_by_arm():
    pairs = [(planned("static", seed=n), result(float(n), right=[1])) for n in (0, 1)]
    pairs.append((planned("elmo"), result(9.0, right=[1])))
    static, elmo = collect(pairs)
    assert (static.condition, sorted(static.results), static.summary.mean) == (
        "static",
        [0, 1],
        0.5,
    )
    assert (elmo.condition, elmo.num_examples, elmo.metric) == ("elmo", 100, "accuracy")
