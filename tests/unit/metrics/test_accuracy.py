"""Accuracy of labels, and the figures of each label."""

import pytest

from elmokit.metrics.accuracy import accuracy_of, count_labels, percent


def test_every_sentence_has_a_row_and_every_label_its_own_figures():
    counted = count_labels([["a", "b"], [], ["a", "b"]], [["a", "b"], [], ["b", "c"]])
    assert counted.rows.tolist() == [[2, 2], [0, 0], [0, 2]]
    assert accuracy_of(counted.rows.sum(axis=0)) == 50
    assert accuracy_of(counted.rows).tolist() == [100, 0, 0]  # nothing to score is 0
    assert list(counted.by_label) == ["a", "b", "c"]
    b, c = counted.by_label["b"], counted.by_label["c"]
    assert (b.precision, b.recall, b.f1, b.correct, b.predicted, b.gold) == (50, 50, 50, 1, 2, 2)
    assert (c.recall, c.predicted, c.gold) == (0, 0, 1)
    assert (percent(1, 4), percent(0, 0), percent(3, 0)) == (25, 0, 0)
    with pytest.raises(ValueError, match="zip"):  # predictions are missing
        count_labels([["a"]], [["a"], ["a", "b"]])
