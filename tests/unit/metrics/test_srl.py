"""Semantic roles: continuations, the predicate, pieces."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmokit.metrics.srl import read_arguments, score_roles


@pytest.mark.parametrize(
    ("tags", "arguments"),
    [
        ("B-A0 B-V B-C-A0 I-C-A0", [("A0", ((0, 1), (2, 4)))]),
        ("B-C-A1 O B-C-A1", [("A1", ((0, 1), (2, 3)))]),  # the first becomes an A1
        ("B-A0 B-A0 B-C-A0", [("A0", ((0, 1),)), ("A0", ((1, 2), (2, 3)))]),  # the latest
        ("B-A1 B-R-A1 B-V B-C-V", [("A1", ((0, 1),)), ("R-A1", ((1, 2),))]),
        ("B-A0 I-A1", [("A0", ((0, 1),)), ("A1", ((1, 2),))]),  # label changes
        ("B-V O", []),
    ],
)
def test_arguments_by_hand(tags, arguments):
    assert read_arguments(tags.split()) == arguments


def test_pieces_must_all_agree():
    gold = ["B-A0", "O", "B-C-A0"]
    # One piece of two, and one long span from the first to the last token: an extra and a miss.
    for wrong in ("B-A0 O O", "B-A0 I-A0 I-A0"):
        assert score_roles([wrong.split()], [gold]).counts.tolist() == [[0, 1, 1]]
    assert score_roles([gold], [gold]).counts.tolist() == [[1, 1, 1]]


def test_the_predicate_is_not_scored():
    score = score_roles([["B-V", "B-A1"], ["B-V"]], [["B-V", "B-A0"], ["O"]])
    assert score.counts.tolist() == [[0, 1, 1], [0, 0, 0]]
    assert list(score.by_type) == ["A0", "A1"]
    assert score.overall.f1 == 0


@given(
    st.lists(
        st.tuples(*[st.sampled_from(["O", "B-A0", "I-A0", "B-C-A0", "B-A1", "B-V"])] * 2),
        min_size=1,
        max_size=8,
    )
)
def test_swapping_sides_swaps_precision_and_recall(pairs):
    left, right = [a for a, _ in pairs], [b for _, b in pairs]
    one, other = score_roles([left], [right]).overall, score_roles([right], [left]).overall
    assert (one.precision, one.recall, one.f1) == (other.recall, other.precision, other.f1)
    assert score_roles([left], [left]).overall.f1 == (100 if read_arguments(left) else 0)
