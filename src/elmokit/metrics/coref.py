"""Coreference: MUC, B³ and CEAF-φ4, and the mean of their F1, as in the CoNLL-2012 scorer.

Singletons are removed from both sides, mentions match by exact boundaries, and the numerators and
denominators of each measure are summed over documents before dividing.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from elmokit.metrics.accuracy import Counts, percent

Mention = tuple[int, int]  # start, end (exclusive), in tokens of the document
Clusters = Sequence[Sequence[Mention]]
MEASURES: tuple[str, ...] = ("muc", "b3", "ceaf")
_Sets = Sequence[frozenset[Mention]]


def count_clusters(predicted: Sequence[Clusters], gold: Sequence[Clusters]) -> Counts:
    """Return numerator and denominator of precision and of recall for each of `MEASURES`: (N, 12).

    Mentions may nest and overlap; each is in one cluster of its document at most. A mention
    repeated within a cluster counts once.
    """
    rows = np.zeros((len(gold), 12))
    for row, (guess, truth) in enumerate(zip(predicted, gold, strict=True)):
        response, key = _without_singletons(guess), _without_singletons(truth)
        matched = _best_similarity(response, key)
        rows[row] = (
            *_muc_part(response, key), *_muc_part(key, response),
            *_b_cubed_part(response, key), *_b_cubed_part(key, response),
            matched, len(response), matched, len(key),
        )  # fmt: skip
    return rows


def f1s_of(totals: Counts) -> Counts:
    """Return the F1 of each measure in percent: (..., 12) -> (..., 3)."""
    precision = percent(totals[..., 0::4], totals[..., 1::4])
    recall = percent(totals[..., 2::4], totals[..., 3::4])
    return percent(2 * precision * recall, precision + recall) / 100


def average_f1_of(totals: Counts) -> Counts:
    """Return average F1 in percent from summed rows of `count_clusters`: (..., 12) -> (...)."""
    muc, b_cubed, ceaf = np.moveaxis(f1s_of(totals), -1, 0)
    return np.asarray((muc + b_cubed + ceaf) / 3)


def assign(similarity: NDArray[np.float64]) -> list[tuple[int, int]]:
    """Return the (row, column) pairs, each used at most once, with the largest sum."""
    # Hungarian method, O(n^2 m). SciPy has it as well, but nothing else of a task needs SciPy.
    if similarity.shape[0] > similarity.shape[1]:
        return sorted((row, column) for column, row in assign(similarity.T))
    num_rows, num_columns = similarity.shape
    cost = -similarity
    row_price, column_price = np.zeros(num_rows), np.zeros(num_columns)
    row_of = np.full(num_columns, -1)
    for new_row in range(num_rows):
        # Shortest path (in reduced cost) from the new row to a free column, over matched ones.
        slack, parent = np.full(num_columns, np.inf), np.full(num_columns, -1)
        reached = np.zeros(num_columns, dtype=bool)
        row, column = new_row, -1
        while row >= 0:
            reduced = cost[row] - row_price[row] - column_price
            better = ~reached & (reduced < slack)
            slack[better], parent[better] = reduced[better], column
            column = int(np.argmin(np.where(reached, np.inf, slack)))
            step = slack[column]
            row_price[new_row] += step
            row_price[row_of[reached]] += step
            column_price[reached] -= step
            slack[~reached] -= step
            reached[column] = True
            row = int(row_of[column])
        # Shift every match on the path by one.
        while column >= 0:
            before = int(parent[column])
            row_of[column] = row_of[before] if before >= 0 else new_row
            column = before
    return sorted((int(row), column) for column, row in enumerate(row_of) if row >= 0)


def _without_singletons(clusters: Clusters) -> list[frozenset[Mention]]:
    return [mentions for mentions in map(frozenset, clusters) if len(mentions) > 1]


def _muc_part(clusters: _Sets, others: _Sets) -> tuple[float, float]:
    """Return the links of ``clusters`` that ``others`` keep, and all links."""
    kept = links = 0
    for cluster, homes in zip(clusters, _homes(clusters, others), strict=True):
        parts = len(set(homes)) + len(cluster) - len(homes)
        kept += len(cluster) - parts
        links += len(cluster) - 1
    return float(kept), float(links)


def _b_cubed_part(clusters: _Sets, others: _Sets) -> tuple[float, float]:
    """Return ``sum |C ∩ O|^2 / |C|`` over pairs, and the number of mentions."""
    share = 0.0
    for cluster, homes in zip(clusters, _homes(clusters, others), strict=True):
        share += sum(homes.count(other) ** 2 for other in set(homes)) / len(cluster)
    return share, float(sum(map(len, clusters)))


def _homes(clusters: _Sets, others: _Sets) -> list[list[int]]:
    """Return, of each cluster, the numbers of the other clusters that its mentions are in."""
    other_of = {mention: at for at, cluster in enumerate(others) for mention in cluster}
    return [[other_of[mention] for mention in cluster & other_of.keys()] for cluster in clusters]


def _best_similarity(response: _Sets, key: _Sets) -> float:
    """Return the largest sum of ``2 |K ∩ R| / (|K| + |R|)`` over one-to-one matchings."""
    if not response or not key:
        return 0.0
    phi = np.array([[2 * len(k & r) / (len(k) + len(r)) for r in response] for k in key])
    return float(sum(phi[pair] for pair in assign(phi)))
