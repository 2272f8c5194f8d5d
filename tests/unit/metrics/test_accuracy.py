"""Accuracy and macro F1 of labels."""

import pytest

from elmokit.metrics.accuracy import accuracy_of, score_label_sequences, score_labels


def test_accuracy_and_macro_f1_by_hand():
    # a: 1 hit, 2 guesses, 1 gold: 2/3. b: 1, 1, 2: 2/3. c: guessed never, gold once: 0.
    score = score_labels(["a", "b", "a", "b"], ["a", "b", "b", "c"])
    assert (score.correct, score.total, score.accuracy) == (2, 4, 50)
    # a 2*1/(2+1), b 2*1/(2+2), c 0
    assert score.macro_f1 == pytest.approx(100 * (2 / 3 + 2 / 4 + 0) / 3)


def test_every_sentence_has_a_row_of_counts():
    score = score_label_sequences([["N", "V"], [], ["N"]], [["N", "N"], [], ["N"]])
    assert score.counts.tolist() == [[1, 2], [0, 0], [1, 1]]
    assert float(accuracy_of(score.counts.sum(axis=0))) == score.accuracy


def test_nothing_to_score_is_zero():
    score = score_labels([], [])
    assert (score.accuracy, score.macro_f1, score.counts.shape) == (0, 0, (0, 2))


def test_missing_predictions_are_an_error():
    with pytest.raises(ValueError, match=r"`predicted` .*\b2 .*\b1\b"):
        score_labels(["a"], ["a", "b"])
    with pytest.raises(ValueError, match=r"Example 1 .*\b2 .*\b1\b"):
        score_label_sequences([["a"], ["a"]], [["a"], ["a", "b"]])


def test_every_label_has_its_own_figures():
    score = score_label_sequences([["a", "b"], ["a", "b"]], [["a", "b"], ["b", "c"]])
    assert list(score.by_label) == ["a", "b", "c"]
    found = score.by_label["b"]
    assert (found.precision, found.recall, found.f1) == (50, 50, 50)
    assert (found.correct, found.predicted, found.gold) == (1, 2, 2)
    assert (score.by_label["c"].recall, score.by_label["c"].gold) == (0, 1)
