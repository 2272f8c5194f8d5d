"""Results on disk; comparisons and tables of conditions and of layer weights; all made up."""

from dataclasses import replace
from itertools import product

import pytest

from elmokit.errors import FormatError
from elmokit.experiments import comparison
from elmokit.experiments.comparison import Findings, compare
from elmokit.experiments.report import PLOTS
from elmokit.experiments.runs import RESULT_FILE, read_outcome, write_result
from elmokit.experiments.tables import fewer_labels_table, gain_table, mix_table, score_table
from elmokit.probes.layer_weights import MixWeights

from ...builders.experiment_runs import planned, result

VALUES = {  # static, elmo
    1.0: (60.0, 70.0), 0.1: (40.0, 58.0), 0.01: (30.0, 62.0),
}  # fmt: skip


def findings(*, missing=()):
    runs = []
    for seed, share, is_elmo in product((0, 1), VALUES, (False, True)):
        value, condition = VALUES[share][is_elmo] + seed, ("static", "elmo")[is_elmo]
        mix = MixWeights(
            position="input", weights=(0.1, 0.6 + 0.1 * seed, 0.3 - 0.1 * seed), gamma=2.0
        )  # fmt: skip
        made = result(
            value, right=[int(is_elmo)] * 20, epochs=[value, value - seed], best_epoch=2 - seed,
            weights=[mix] * is_elmo,
        )  # fmt: skip
        run = planned(condition, share=share, seed=seed)
        runs.append((run, None if (condition, share, seed) in missing else made))
    return Findings(runs, "static")


def cell(condition, *results):
    return comparison.Cell("nli", "pairs", 1.0, condition, dict(enumerate(results)))


def test_a_result_comes_back_as_it_was(tmp_path):
    run = planned()
    path = run.directory(tmp_path) / RESULT_FILE
    assert read_outcome(path.parent) is None
    weights = [MixWeights(position="input", weights=(0.2, 0.5, 0.3), gamma=1.5)]
    stored = result(61.25, right=[1, 0, 1], units=[0, 0, 1], epochs=[40.0, 61.25], weights=weights)
    write_result(run, tmp_path, stored)
    assert read_outcome(path.parent) == stored
    assert stored.counts_by_unit.tolist() == [[1, 2], [1, 1]]
    assert result(right=[1, 0]).counts_by_unit.tolist() == [[1, 1], [0, 1]]
    path.write_text("{", encoding="utf-8")
    with pytest.raises(FormatError, match=RESULT_FILE):
        read_outcome(path.parent)


def test_error_reduction_is_the_gain_as_a_share_of_what_is_missing_to_100():
    # SQuAD and SRL of table 1 in the paper
    assert comparison.error_reduction(81.1, 85.8) == pytest.approx(24.9, abs=0.05)
    assert comparison.error_reduction(81.4, 84.6) == pytest.approx(17.2, abs=0.05)
    assert comparison.error_reduction(100.0, 100.0) is None


def test_epochs_to_the_best_of_the_reference():
    ours = cell("elmo", result(right=[1], epochs=[40, 55, 60]), result(right=[1], epochs=[56]))
    theirs = cell("static", result(right=[1], epochs=[50, 20]), result(right=[1], epochs=[56]))
    assert compare(ours, theirs).epochs_to_reference == 1.5  # epochs 2 and 1 reach 53
    never = cell("elmo", result(right=[1], epochs=[40]), result(right=[1], epochs=[56]))
    assert compare(never, theirs).epochs_to_reference is None


def test_the_share_that_reaches_a_score_lies_on_a_line_over_logarithms():
    points = [(1.0, 70.0), (0.01, 40.0), (0.1, 60.0)]
    found = [comparison.share_that_reaches(points, score) for score in (50.0, 60.0, 30.0)]
    assert found == pytest.approx([10**-1.5, 0.1, 0.01])
    assert comparison.share_that_reaches(points, 70.5) is None


def test_scores_have_a_row_for_each_share_and_say_which_seeds_are_missing():
    table = score_table(findings(missing=[("elmo", 1.0, 1), ("elmo", 0.1, 0), ("elmo", 0.1, 1)]))
    assert table.header[-2:] == ("static", "elmo")
    assert table.rows[0] == (
        "nli", "pairs", "100 %", "accuracy", "100", "60.50 ± 0.71", "70.00 (1 of 2 seeds)",
    )  # fmt: skip
    assert table.rows[1][-2:] == ("40.50 ± 0.71", "–")
    assert [row[2] for row in table.rows] == ["100 %", "10 %", "1 %"]


def test_gains_by_hand():
    table = gain_table(findings())
    row = dict(zip(table.header, table.rows[0], strict=True))
    assert (row["condition"], row["gain"], row["error reduction"]) == ("elmo", "+10.00", "25.3 %")
    assert (row["p"], row["p (Holm)"], row["seeds"], row["units"]) == ("< 0.001",) * 2 + ("2", "20")
    assert row["95 % interval"] == "–"  # by the counts, all units agree
    few = gain_table(findings(missing=[("elmo", 1.0, 1)])).rows[0]
    assert few[table.header.index("seeds")] == "1 and 2"


def test_changes_of_gains_by_hand():
    assert [row[2:7] for row in fewer_labels_table(findings()).rows] == [
        ("10 %", "elmo", "+18.00", "+10.00", "+8.00"),
        ("1 %", "elmo", "+32.00", "+10.00", "+22.00"),
    ]
    without_all = [("elmo", 1.0, 0), ("elmo", 1.0, 1)]
    assert fewer_labels_table(findings(missing=without_all)).rows == ()


def test_p_values_are_adjusted_for_the_tasks_of_one_condition_and_share():
    runs = [(replace(run, task=task), None if task == "qa" else made)
            for task in ("nli", "sentiment", "qa") for run, made in findings().runs]  # fmt: skip
    found = Findings(runs, "static").comparisons
    assert len(found) == 2 * 3
    assert {one.adjusted_p for one in found} == {3 * one.p_value for one in found}


def test_layer_weights_over_seeds():
    (row, *_) = mix_table(findings()).rows
    assert row[:3] == ("input", "nli", "pairs")
    assert row[3:] == ("0.100 ± 0.000", "0.650 ± 0.071", "0.250 ± 0.071", "2.00", "2")


@pytest.mark.parametrize("plot", PLOTS.values())
def test_pictures_are_drawn_of_results_only(tmp_path, plot):
    pytest.importorskip("matplotlib")
    nothing = Findings([(run, None) for run, _ in findings().runs], "static")
    assert not plot(nothing, tmp_path / "plot.png")
    assert list(tmp_path.iterdir()) == []
    assert plot(findings(), tmp_path / "plot.svg")
    drawing = (tmp_path / "plot.svg").read_text("utf-8")
    labels = ("1", "10", "100") if plot is PLOTS["curves"] else ("input", "layer 2")
    assert all(f"<!-- {label} -->" in drawing for label in labels)
