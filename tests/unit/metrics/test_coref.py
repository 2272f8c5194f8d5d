"""Coreference measures against hand-worked cases and brute force."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmokit.metrics.coref import assign, average_f1_of, score_clusters

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


def test_figures_by_hand():
    # Gold {A B C} {D E}; response {A B} {C D E}.
    score = score_clusters([[[A, B], [C, D, E]]], [[[A, B, C], [D, E]]])
    # MUC: (3-2) + (2-1) of 2 + 1 links = 2/3 on both sides.
    assert (score.muc.precision, score.muc.recall) == pytest.approx((200 / 3, 200 / 3))
    # B3 recall: (4/3 + 1/3 + 4/2) / 5 = 11/15; precision: (4/2 + 1/3 + 4/3) / 5 = 11/15.
    assert (score.b_cubed.precision, score.b_cubed.recall) == pytest.approx((1100 / 15,) * 2)
    # CEAF: 2*2/5 + 2*2/5 = 1.6 of 2 clusters.
    assert score.ceaf.f1 == pytest.approx(80)
    assert score.average_f1 == pytest.approx((200 / 3 + 1100 / 15 + 80) / 3)


def test_singletons_are_removed_on_both_sides():
    with_singletons = score_clusters([[[A, B], [C]]], [[[A, B], [D]]])
    assert with_singletons.average_f1 == pytest.approx(100)


@pytest.mark.parametrize(
    ("predicted", "gold"), [([], [[A, B]]), ([[A, B]], []), ([], []), ([[A]], [[A]])]
)
def test_empty_sides_score_zero(predicted, gold):
    assert score_clusters([predicted], [gold]).average_f1 == 0


def test_nested_mentions_are_different_mentions():
    score = score_clusters([[[(0, 3), (5, 6)]]], [[[(0, 2), (5, 6)]]])
    assert score.muc.f1 == 0
    assert score.ceaf.f1 == pytest.approx(50)  # 2*1/4 of one cluster
    nested = [[(0, 3), (0, 2), (1, 2)]]
    assert score_clusters([nested], [nested]).average_f1 == pytest.approx(100)


def test_a_mention_twice_in_a_cluster_counts_once():
    assert score_clusters([[[A, B, B], [C, C]]], [[[A, B]]]) == score_clusters(
        [[[A, B]]], [[[A, B]]]
    )


@pytest.mark.parametrize("clusters", [[[A, B], [B, C]], [[A, (3, 3)]], [[(-1, 2), A]]])
def test_impossible_mentions_are_an_error(clusters):
    with pytest.raises(ValueError, match=r"0 <= start < end.* \(-?\d, \d\) .*predicted .* 0\b"):
        score_clusters([clusters], [[[A, B]]])


@given(documents)
def test_measures_equal_brute_force_swap_and_ignore_order(examples):
    predicted, gold = [p for p, _ in examples], [g for _, g in examples]
    score = score_clusters(predicted, gold)
    measures = (score.muc, score.b_cubed, score.ceaf)
    expected = by_definition(predicted, gold)
    for measure, (precision, recall) in zip(measures, expected, strict=True):
        assert measure.precision == pytest.approx(precision)
        assert measure.recall == pytest.approx(recall)
    swapped = score_clusters(gold, predicted)
    assert swapped.muc.precision == pytest.approx(score.muc.recall)
    assert swapped.ceaf.precision == pytest.approx(score.ceaf.recall)
    assert swapped.average_f1 == pytest.approx(score.average_f1)
    reordered = score_clusters([p[::-1] for p in predicted[::-1]], [g[::-1] for g in gold[::-1]])
    assert reordered.average_f1 == pytest.approx(score.average_f1)
    assert float(average_f1_of(score.counts.sum(axis=0))) == score.average_f1
    perfect = 100 if any(len(c) > 1 for g in gold for c in g) else 0
    assert score_clusters(gold, gold).average_f1 == pytest.approx(perfect)


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
