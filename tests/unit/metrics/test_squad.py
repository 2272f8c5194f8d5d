"""Answers: normalization, exact match, F1."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmokit.metrics.squad import (
    answer_f1_of,
    count_answers,
    exact_match_of,
    normalize_korquad,
    normalize_squad,
)


def test_normalizations_by_hand():
    assert normalize_squad("The  U.S. an-Army, then") == "us anarmy then"
    assert normalize_korquad("《The》 '서울'(시) a.b") == "the 서울 시 ab"


@pytest.mark.parametrize(
    ("predicted", "gold", "style", "exact", "f1"),
    [
        ("a red big cat", ["cow", "big red dog"], "squad", 0, 2 / 3),  # the best gold answer
        ("go go", ["go"], "squad", 0, 2 / 3),  # as often as both have it: P = 1/2, R = 1
        ("서울 시", ["서울"], "korquad", 0, 4 / 5),  # characters: P = 2/3, R = 1
        ("서울시", ["서울"], "squad", 0, 0),  # words
        ("", ["x"], "squad", 0, 0),
        ("a", ["the"], "squad", 1, 0),  # nothing is left of either: equal, yet no common word
    ],
)
def test_answers_by_hand(predicted, gold, style, exact, f1):
    ((found_exact, found_f1, one),) = count_answers([predicted], [(gold, style)])
    assert (found_exact, found_f1, one) == (exact, pytest.approx(f1), 1)


@given(
    st.lists(st.tuples(*[st.lists(st.sampled_from("bcd"), min_size=1, max_size=4)] * 2), min_size=1)
)
def test_f1_equals_precision_and_recall_by_pairing_words(examples):
    expected = []
    for a, b in examples:
        left = list(b)
        same = sum(1 for word in a if word in left and not left.remove(word))
        precision, recall = same / len(a), same / len(b)
        expected.append(2 * precision * recall / (precision + recall) if same else 0)
    predicted = [" ".join(a) for a, _ in examples]
    for style in ("squad", "korquad"):
        totals = count_answers(predicted, [([" ".join(b)], style) for _, b in examples]).sum(axis=0)
        assert answer_f1_of(totals) == pytest.approx(100 * sum(expected) / len(expected))
        same = [a == b for a, b in examples]
        assert exact_match_of(totals) == pytest.approx(100 * sum(same) / len(same))
