"""Answers: normalization, exact match, F1."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmokit.metrics.squad import (
    answer_f1_of,
    exact_match_of,
    normalize_korquad,
    normalize_squad,
    score_answers,
)


def test_normalizations_by_hand():
    assert normalize_squad("The  U.S. an-Army, then") == "us anarmy then"
    assert normalize_korquad("《The》 '서울'(시) a.b") == "the 서울 시 ab"


def test_squad_f1_takes_the_best_gold_answer():
    # "red big cat" against "big red dog": 2 of 3 and 2 of 3; against "cow": 0.
    score = score_answers(["a red big cat"], [["cow", "big red dog"]], style="squad")
    assert score.exact_match == 0
    assert score.f1 == pytest.approx(200 / 3)


def test_repeated_words_count_as_often_as_both_have_them():
    # same = 1: P = 1/2, R = 1
    assert score_answers(["go go"], [["go"]], style="squad").f1 == pytest.approx(200 / 3)


def test_korquad_f1_counts_characters():
    # 서울시 against 서울: same 2, P = 2/3, R = 1: 4/5. By words it would be 0.
    assert score_answers(["서울 시"], [["서울"]], style="korquad").f1 == pytest.approx(80)
    assert score_answers(["서울시"], [["서울"]], style="squad").f1 == 0


def test_missing_and_empty_predictions():
    score = score_answers([None, "", "x"], [["x"], ["x"], ["x"]], style="squad")
    assert score.counts.tolist() == [[0, 0, 1], [0, 0, 1], [1, 1, 1]]
    assert score.exact_match == pytest.approx(100 / 3)
    assert score_answers([None], [["the"]], style="squad").exact_match == 0
    # Nothing left of either: equal, yet no common word.
    assert score_answers(["a"], [["the"]], style="squad").counts.tolist() == [[1, 0, 1]]
    assert score_answers([], [], style="korquad").f1 == 0


@pytest.mark.parametrize("gold", [[[]], ["text"]])
def test_a_question_needs_gold_answers(gold):
    with pytest.raises(ValueError, match=f"Question 0 .*{re.escape(repr(gold[0]))}"):
        score_answers(["x"], gold, style="squad")


@given(
    st.lists(st.tuples(*[st.lists(st.sampled_from("bcd"), min_size=1, max_size=4)] * 2), min_size=1)
)
def test_f1_equals_precision_and_recall_by_pairing_words(examples):
    ours = [" ".join(a) for a, _ in examples]
    theirs = [[" ".join(b)] for _, b in examples]
    expected = []
    for a, b in examples:
        left = list(b)
        same = sum(1 for word in a if word in left and not left.remove(word))
        precision, recall = same / len(a), same / len(b)
        expected.append(2 * precision * recall / (precision + recall) if same else 0)
    score = score_answers(ours, theirs, style="squad")
    assert score.f1 == pytest.approx(100 * sum(expected) / len(expected))
    assert score_answers(ours, theirs, style="korquad").f1 == pytest.approx(score.f1)
    assert score_answers([t[0] for t in theirs], theirs, style="squad").f1 == pytest.approx(100)
    totals = score.counts.sum(axis=0)
    figures = (float(exact_match_of(totals)), float(answer_f1_of(totals)))
    assert figures == (score.exact_match, score.f1)
