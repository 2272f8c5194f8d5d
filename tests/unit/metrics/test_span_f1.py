"""Spans, semantic roles and their F1 against the rules of conlleval and srl-eval."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmokit.metrics.span_f1 import (
    convert_tags,
    count_spans,
    f1_of,
    read_arguments,
    read_spans,
)

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


@given(sentences)
def test_spans_equal_conllevals_tables(tags):
    assert set(read_spans(tags)) == spans_by_boundaries(tags)
    # IOBES, and a type with a hyphen
    assert read_spans(["B-a-b", "E-a-b", "S-Y"]) == [("a-b", 0, 2), ("Y", 2, 3)]


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


def test_every_type_has_its_own_figures():
    counted = count_spans([["B-X", "O", "B-Y"], ["B-X"]], [["B-X", "B-Y", "I-Y"], ["O"]])
    assert f1_of(counted.rows.sum(axis=0)) == pytest.approx(100 * 2 / 5)
    x = counted.by_label["X"]
    assert (list(counted.by_label), x.precision, x.recall) == (["X", "Y"], 50, 100)


@given(pairs)
def test_scores_equal_sets_and_ignore_order_and_swap(examples):
    predicted, gold = [p for p, _ in examples], [g for _, g in examples]
    rows = count_spans(predicted, gold).rows
    ours = {(at, *s) for at, tags in enumerate(predicted) for s in spans_by_boundaries(tags)}
    theirs = {(at, *s) for at, tags in enumerate(gold) for s in spans_by_boundaries(tags)}
    assert rows.sum(axis=0).tolist() == [len(ours & theirs), len(ours), len(theirs)]
    assert count_spans(predicted[::-1], gold[::-1]).rows.tolist() == rows[::-1].tolist()
    assert count_spans(gold, predicted).rows.tolist() == rows[:, [0, 2, 1]].tolist()
