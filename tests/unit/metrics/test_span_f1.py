"""Spans and their F1 against conlleval's rules."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmokit.metrics.span_f1 import convert_tags, f1_of, read_spans, score_tags, write_tags

TAGS = [f"{prefix}-{label}" for prefix in "BILU" for label in ("X", "Y")] + ["O"]
sentences = st.lists(st.sampled_from(TAGS), max_size=8)
pairs = st.lists(
    st.integers(0, 8).flatmap(
        lambda size: st.tuples(*[st.lists(st.sampled_from(TAGS), min_size=size, max_size=size)] * 2)
    ),
    max_size=5,
)


def spans_by_boundaries(tags):
    """conlleval's two tables, chunk ends and chunk starts, with E for L and S for U."""

    def split(tag):
        return ("O", "") if tag == "O" else tuple(tag.split("-"))

    ends_before = {"BB", "B" + "U", "BO", "IB", "IU", "IO"}
    starts = {"OI", "OL", "LI", "LL", "UI", "UL"}
    found, start = set(), None
    padded = [("O", ""), *map(split, tags), ("O", "")]
    for at in range(1, len(padded)):
        (before, old), (now, new) = padded[at - 1], padded[at]
        pair = before + now
        ends = pair in ends_before or before in "LU" or (before != "O" and old != new)
        if start is not None and ends:
            found.add((old, start, at - 1))
            start = None
        if now in ("B", "U") or pair in starts or (now != "O" and old != new):
            start = at - 1
    return found


@pytest.mark.parametrize(
    ("tags", "spans"),
    [
        ("I-X I-X B-X O", [("X", 0, 2), ("X", 2, 3)]),  # IOB1
        ("O I-X I-Y", [("X", 1, 2), ("Y", 2, 3)]),  # I after O and after another type
        ("B-X L-X L-X", [("X", 0, 2), ("X", 2, 3)]),  # L with nothing before
        ("U-X I-X", [("X", 0, 1), ("X", 1, 2)]),
        ("B-X O", [("X", 0, 1)]),  # no L
        ("B-X E-X S-Y", [("X", 0, 2), ("Y", 2, 3)]),  # IOBES
        ("B-a-b I-a-b", [("a-b", 0, 2)]),  # the first hyphen splits
        ("O O", []),
    ],
)
def test_spans_by_hand(tags, spans):
    assert read_spans(tags.split()) == spans


@given(sentences)
def test_spans_equal_conllevals_tables(tags):
    assert set(read_spans(tags)) == spans_by_boundaries(tags)


def test_conversions_by_hand():
    iob1 = ["I-X", "I-X", "B-X", "O", "I-X", "I-Y"]
    iob2 = ["B-X", "I-X", "B-X", "O", "B-X", "B-Y"]
    bioul = ["B-X", "L-X", "U-X", "O", "U-X", "U-Y"]
    for tags in (iob1, iob2, bioul):
        assert convert_tags(tags, scheme="iob1") == iob1
        assert convert_tags(tags, scheme="iob2") == iob2
        assert convert_tags(tags, scheme="bioul") == bioul


@given(sentences, st.sampled_from(["iob1", "iob2", "bioul"]))
def test_conversion_keeps_the_spans(tags, scheme):
    assert read_spans(convert_tags(tags, scheme=scheme)) == read_spans(tags)


@pytest.mark.parametrize("tag", ["X-PER", "o", "", "-X", "O-X"])
def test_an_unknown_tag_is_an_error(tag):
    with pytest.raises(ValueError, match=rf"Tag 1 .*O, .*B, I, L, U, E .*S, .*'{tag}'"):
        read_spans(["O", tag])


@pytest.mark.parametrize("spans", [[("X", 0, 2), ("Y", 1, 3)], [("X", 1, 1)], [("X", 2, 4)]])
def test_spans_that_tags_cannot_hold_are_an_error(spans):
    with pytest.raises(ValueError, match=rf"\b3 .*{re.escape(str(spans[-1]))}"):
        write_tags(spans, 3, scheme="iob2")


def test_figures_by_hand():
    # correct: X(0,1). predicted: X(0,1), Y(2,3), X(0,1)'; gold: X(0,1), Y(1,3).
    score = score_tags(
        [["B-X", "O", "B-Y"], ["B-X"]],
        [["B-X", "B-Y", "I-Y"], ["O"]],
    )
    assert score.counts.tolist() == [[1, 2, 2], [0, 1, 0]]
    assert score.overall.precision == pytest.approx(100 / 3)
    assert score.overall.recall == 50
    assert score.overall.f1 == pytest.approx(100 * 2 / 5)  # 2 correct / (predicted + gold)
    assert list(score.by_type) == ["X", "Y"]
    assert (score.by_type["X"].precision, score.by_type["X"].recall) == (50, 100)
    assert score.by_type["Y"].f1 == 0


@pytest.mark.parametrize(("predicted", "gold"), [("O O", "B-X O"), ("B-X O", "O O"), ("O", "O")])
def test_empty_sides_score_zero(predicted, gold):
    overall = score_tags([predicted.split()], [gold.split()]).overall
    assert (overall.precision, overall.recall, overall.f1) == (0, 0, 0)


@given(pairs)
def test_scores_equal_sets_and_ignore_order_and_swap(examples):
    predicted, gold = [p for p, _ in examples], [g for _, g in examples]
    score = score_tags(predicted, gold)
    ours = {(at, *s) for at, tags in enumerate(predicted) for s in spans_by_boundaries(tags)}
    theirs = {(at, *s) for at, tags in enumerate(gold) for s in spans_by_boundaries(tags)}
    f1 = 200 * len(ours & theirs) / (len(ours) + len(theirs)) if ours or theirs else 0
    assert score.overall.f1 == pytest.approx(f1)
    assert float(f1_of(score.counts.sum(axis=0))) == score.overall.f1
    assert score_tags(predicted[::-1], gold[::-1]) == score
    swapped = score_tags(gold, predicted).overall
    assert (swapped.precision, swapped.recall) == (score.overall.recall, score.overall.precision)
    assert score_tags(gold, gold).overall.f1 == (100 if theirs else 0)


def test_unequal_lengths_are_an_error():
    with pytest.raises(ValueError, match=r"Example 0 .*\b2 .*\b1\b"):
        score_tags([["O"]], [["O", "O"]])
