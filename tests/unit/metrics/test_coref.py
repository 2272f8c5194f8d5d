"""Coreference measures against hand-worked cases and brute force."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmokit.metrics.coref import (
    assign,
    average_f1_of,
    count_clusters,
    f1s_of,
    precision_and_recall_of,
)

A, B, C, D, E = [(at, at + 1) for at in range(5)]


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


def average_f1(predicted, gold):
    return float(average_f1_of(count_clusters([predicted], [gold]).sum(axis=0)))


def test_figures_by_hand():
    # Gold {A B C} {D E}; response {A B} {C D E}.
    totals = count_clusters([[[A, B], [C, D, E]]], [[[A, B, C], [D, E]]]).sum(axis=0)
    # MUC: (3-2) + (2-1) of 2 + 1 links = 2/3 on both sides.
    # B3: recall (4/3 + 1/3 + 4/2) / 5 = 11/15; precision (4/2 + 1/3 + 4/3) / 5 = 11/15.
    # CEAF: 2*2/5 + 2*2/5 = 1.6 of 2 clusters.
    expected = [200 / 3, 1100 / 15, 80]
    for figures in (*precision_and_recall_of(totals), f1s_of(totals)):
        assert figures.tolist() == pytest.approx(expected)
    assert average_f1_of(totals) == pytest.approx(sum(expected) / 3)


@pytest.mark.parametrize(
    ("predicted", "gold", "f1"),
    [
        ([[A, B], [C]], [[A, B], [D]], 100),  # singletons are removed on both sides
        ([[A, B, B], [C, C]], [[A, B]], 100),  # a mention twice in a cluster counts once
        ([[(0, 3), (0, 2), (1, 2)]], [[(0, 3), (0, 2), (1, 2)]], 100),  # nested
        ([], [[A, B]], 0),
        ([[A, B]], [], 0),
        ([], [], 0),
        ([[A]], [[A]], 0),
    ],
)
def test_simple_documents(predicted, gold, f1):
    assert average_f1(predicted, gold) == pytest.approx(f1)


@given(documents)
def test_measures_equal_brute_force_swap_and_ignore_order(examples):
    predicted, gold = [p for p, _ in examples], [g for _, g in examples]
    totals = count_clusters(predicted, gold).sum(axis=0)
    precision, recall = precision_and_recall_of(totals)
    expected = by_definition(predicted, gold)
    assert precision.tolist() == pytest.approx(expected[:, 0])
    assert recall.tolist() == pytest.approx(expected[:, 1])
    harmonic = [2 * p * r / (p + r) if p + r else 0 for p, r in expected]
    assert f1s_of(totals).tolist() == pytest.approx(harmonic)
    swapped = precision_and_recall_of(count_clusters(gold, predicted).sum(axis=0))
    assert swapped[0].tolist() == pytest.approx(recall)
    reordered = count_clusters([p[::-1] for p in predicted[::-1]], [g[::-1] for g in gold[::-1]])
    assert average_f1_of(reordered.sum(axis=0)) == pytest.approx(average_f1_of(totals))


@given(st.integers(1, 5), st.integers(1, 5), st.integers(0, 10_000))
def test_assignment_is_the_best_of_all(rows, columns, seed):
    values = np.random.default_rng(seed).integers(-4, 5, size=(rows, columns)).astype(float)
    pairs = assign(values)
    assert len(pairs) == min(rows, columns)
    assert len({r for r, _ in pairs}) == len({c for _, c in pairs}) == len(pairs)
    wide = values if rows <= columns else values.T
    best = max(
        sum(wide[row, column] for row, column in enumerate(order))
        for order in permutations(range(wide.shape[1]), wide.shape[0])
    )
    assert sum(values[pair] for pair in pairs) == best
