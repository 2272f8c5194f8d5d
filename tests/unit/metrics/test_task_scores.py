"""Spans, semantic roles and their F1 against the rules of conlleval and srl-eval."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmokit.metrics.task_scores import (
    accuracy_of,
    answer_f1_of,
    average_f1_of,
    convert_tags,
    count_answers,
    count_clusters,
    count_labels,
    count_spans,
    exact_match_of,
    f1_of,
    f1s_of,
    normalize_korquad,
    normalize_squad,
    percent,
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
        assert convert_tags(tags, scheme="iob2") == iob2
        assert convert_tags(tags, scheme="bioul") == bioul


@given(sentences, st.sampled_from(["iob2", "bioul"]))
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


@given(pairs)
def test_scores_equal_sets_and_ignore_order_and_swap(examples):
    predicted, gold = [p for p, _ in examples], [g for _, g in examples]
    rows = count_spans(predicted, gold).rows
    ours = {(at, *s) for at, tags in enumerate(predicted) for s in spans_by_boundaries(tags)}
    theirs = {(at, *s) for at, tags in enumerate(gold) for s in spans_by_boundaries(tags)}
    assert rows.sum(axis=0).tolist() == [len(ours & theirs), len(ours), len(theirs)]
    assert count_spans(predicted[::-1], gold[::-1]).rows.tolist() == rows[::-1].tolist()
    assert count_spans(gold, predicted).rows.tolist() == rows[:, [0, 2, 1]].tolist()
    dice = 200 * len(ours & theirs) / max(1, len(ours) + len(theirs))
    assert f1_of(rows.sum(axis=0)) == pytest.approx(dice)


def test_every_sentence_has_a_row_and_every_label_its_own_figures():
    counted = count_labels([["a", "b"], [], ["a", "b"]], [["a", "b"], [], ["b", "c"]])
    assert counted.rows.tolist() == [[2, 2], [0, 0], [0, 2]]
    assert accuracy_of(counted.rows.sum(axis=0)) == 50
    assert accuracy_of(counted.rows).tolist() == [100, 0, 0]  # nothing to score is 0
    figures = {
        label: (part.precision, part.recall, part.f1, part.correct, part.predicted, part.gold)
        for label, part in counted.by_label.items()
    }
    assert figures == {
        "a": (50, 100, pytest.approx(200 / 3), 1, 2, 1), "b": (50, 50, 50, 1, 2, 2),
        "c": (0, 0, 0, 0, 0, 1),
    }  # fmt: skip
    assert (percent(1, 4), percent(0, 0), percent(3, 0)) == (25, 0, 0)
    with pytest.raises(ValueError, match="zip"):  # predictions are missing
        count_labels([["a"]], [["a"], ["a", "b"]])


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
    rows = count_answers([predicted], [(gold, style)])
    assert rows.tolist() == [[exact, pytest.approx(f1), 1]]
    assert (exact_match_of(rows), answer_f1_of(rows)) == (100 * exact, pytest.approx(100 * f1))


def clusters_of(labels):
    """Partition of mentions: label 0 leaves a mention out."""
    return [
        [(at, at + 2) for at, label in enumerate(labels) if label == wanted]
        for wanted in sorted(set(labels) - {0})
    ]


documents = st.lists(
    st.tuples(*[st.lists(st.integers(0, 4), min_size=8, max_size=8).map(clusters_of)] * 2),
    min_size=1,
    max_size=3,
)


def by_definition(predicted, gold):
    """The three (P, R) straight from the definitions, summed over documents."""
    sums = np.zeros((3, 4))
    for response, key in zip(predicted, gold, strict=True):
        r = [set(c) for c in response if len(set(c)) > 1]
        k = [set(c) for c in key if len(set(c)) > 1]
        for column, (one, other) in ((0, (r, k)), (2, (k, r))):
            for cluster in one:
                left = cluster - set().union(*other)
                parts = sum(bool(cluster & o) for o in other) + len(left)
                sums[0, column : column + 2] += len(cluster) - parts, len(cluster) - 1
                for mention in cluster:
                    home = next((o for o in other if mention in o), set())
                    sums[1, column : column + 2] += len(cluster & home) / len(cluster), 1
        small, large = sorted((r, k), key=len)
        best = max(
            sum(2 * len(a & b) / (len(a) + len(b)) for a, b in zip(small, order, strict=False))
            for order in permutations(large, len(small))
        )
        sums[2] += best, len(r), best, len(k)
    safe = np.where(sums == 0, 1, sums)
    return 100 * sums[:, [0, 2]] / safe[:, [1, 3]]


def test_a_mention_twice_in_a_cluster_counts_once():
    a, b, c = (0, 1), (1, 2), (2, 3)
    counts = count_clusters([[[a, b, b], [c, c]]], [[[a, b]]])  # the other is of one mention
    assert average_f1_of(counts) == pytest.approx(100)


@given(documents)
def test_measures_equal_brute_force_swap_and_ignore_order(examples):
    predicted, gold = [p for p, _ in examples], [g for _, g in examples]
    totals = count_clusters(predicted, gold).sum(axis=0)
    expected = by_definition(predicted, gold)
    harmonic = [2 * p * r / (p + r) if p + r else 0 for p, r in expected]
    assert f1s_of(totals).tolist() == pytest.approx(harmonic)
    assert average_f1_of(totals) == pytest.approx(np.mean(harmonic))
    swapped = f1s_of(count_clusters(gold, predicted).sum(axis=0))
    assert swapped.tolist() == pytest.approx(harmonic)
    reordered = count_clusters([p[::-1] for p in predicted[::-1]], [g[::-1] for g in gold[::-1]])
    assert average_f1_of(reordered.sum(axis=0)) == pytest.approx(average_f1_of(totals))
