"""Coreference measures against hand-worked cases and brute force."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmokit.metrics.coref import average_f1_of, count_clusters, f1s_of

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


@pytest.mark.parametrize(
    ("predicted", "gold", "f1"),
    [
        ([[A, B], [C]], [[A, B], [D]], 100),  # singletons are removed on both sides
        ([[A, B, B], [C, C]], [[A, B]], 100),  # a mention twice in a cluster counts once
        ([[(0, 3), (0, 2), (1, 2)]], [[(0, 3), (0, 2), (1, 2)]], 100),  # nested
        ([[A, B], [C, D, E]], [[A, B, C], [D, E]], (200 / 3 + 1100 / 15 + 80) / 3),
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
    expected = by_definition(predicted, gold)
    harmonic = [2 * p * r / (p + r) if p + r else 0 for p, r in expected]
    assert f1s_of(totals).tolist() == pytest.approx(harmonic)
    swapped = f1s_of(count_clusters(gold, predicted).sum(axis=0))
    assert swapped.tolist() == pytest.approx(harmonic)
    reordered = count_clusters([p[::-1] for p in predicted[::-1]], [g[::-1] for g in gold[::-1]])
    assert average_f1_of(reordered.sum(axis=0)) == pytest.approx(average_f1_of(totals))
