"""Coreference: MUC, B³ and CEAF-φ4, and the mean of their F1, as in the CoNLL-2012 scorer.

Singletons are removed from both sides, mentions match by exact boundaries, and the numerators and
denominators of each measure are summed over documents before dividing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from elmokit.errors import InputError
from elmokit.metrics.accuracy import check_same_length, percent

Mention = tuple[int, int]
"""Start, end (exclusive), in tokens of the document."""
Cluster = Sequence[Mention]


@dataclass(frozen=True, kw_only=True)
class CorefFigures:
    """One measure, in percent; 0 where the denominator is 0."""

    precision: float
    recall: float
    f1: float


@dataclass(frozen=True, kw_only=True)
class CorefScore:
    """The three measures and the mean of their F1."""

    muc: CorefFigures
    b_cubed: CorefFigures
    ceaf: CorefFigures
    average_f1: float
    counts: NDArray[np.float64] = field(repr=False, compare=False)
    """A row per document: for each measure, numerator and denominator of precision, recall (12)."""


def score_clusters(
    predicted: Sequence[Sequence[Cluster]], gold: Sequence[Sequence[Cluster]]
) -> CorefScore:
    """Score documents, each a list of clusters.

    Mentions may nest and overlap. A mention repeated within one cluster counts once.

    Raises:
        InputError: if the numbers of documents differ, or a mention is empty, negative or in two
            clusters of one document.
    """
    check_same_length(predicted, gold)
    counts = np.zeros((len(gold), 12))
    for row, (guess, truth) in enumerate(zip(predicted, gold, strict=True)):
        response, key = _clean(guess, "predicted", row), _clean(truth, "gold", row)
        matched = _best_similarity(response, key)
        counts[row] = (
            *_muc_part(response, key), *_muc_part(key, response),
            *_b_cubed_part(response, key), *_b_cubed_part(key, response),
            matched, len(response), matched, len(key),
        )  # fmt: skip
    totals = counts.sum(axis=0)
    muc, b_cubed, ceaf = (_figures(totals[at : at + 4]) for at in (0, 4, 8))
    return CorefScore(
        muc=muc, b_cubed=b_cubed, ceaf=ceaf, average_f1=float(average_f1_of(totals)), counts=counts
    )


def average_f1_of(totals: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return average F1 in percent from summed rows of `CorefScore.counts`: (..., 12) -> (...)."""
    return np.asarray(sum(_f1(totals[..., at : at + 4]) for at in (0, 4, 8)) / 3)


def assign(similarity: NDArray[np.float64]) -> list[tuple[int, int]]:
    """Return the (row, column) pairs, each used at most once, with the largest sum.

    Uses all rows or all columns, whichever are fewer. Hungarian method with potentials, O(n^2 m)
    for n <= m.
    """
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
        while column >= 0:  # shift every match on the path by one
            before = int(parent[column])
            row_of[column] = row_of[before] if before >= 0 else new_row
            column = before
    return sorted((int(row), column) for column, row in enumerate(row_of) if row >= 0)


def _clean(clusters: Sequence[Cluster], side: str, document: int) -> list[frozenset[Mention]]:
    """Check the clusters and return them as sets, without singletons."""
    sets = [frozenset(cluster) for cluster in clusters]
    seen: set[Mention] = set()
    for cluster in sets:
        for mention in cluster:
            if not 0 <= mention[0] < mention[1] or mention in seen:
                raise InputError(
                    f"A mention must be (start, end) with 0 <= start < end and in one cluster, got "
                    f"{mention} in the {side} clusters of document {document}. Drop it, or merge "
                    "the clusters that share it."
                )
        seen |= cluster
    return [cluster for cluster in sets if len(cluster) > 1]


def _muc_part(
    clusters: Sequence[frozenset[Mention]], others: Sequence[frozenset[Mention]]
) -> tuple[float, float]:
    """Return the links of ``clusters`` that ``others`` keep, and all links."""
    other_of = _index(others)
    kept = links = 0
    for cluster in clusters:
        found = [other_of[mention] for mention in cluster if mention in other_of]
        parts = len(set(found)) + len(cluster) - len(found)
        kept += len(cluster) - parts
        links += len(cluster) - 1
    return float(kept), float(links)


def _b_cubed_part(
    clusters: Sequence[frozenset[Mention]], others: Sequence[frozenset[Mention]]
) -> tuple[float, float]:
    """Return ``sum |C ∩ O|^2 / |C|`` over pairs, and the number of mentions."""
    other_of = _index(others)
    share = 0.0
    for cluster in clusters:
        found = [other_of[mention] for mention in cluster if mention in other_of]
        share += sum(found.count(other) ** 2 for other in set(found)) / len(cluster)
    return share, float(sum(map(len, clusters)))


def _best_similarity(
    response: Sequence[frozenset[Mention]], key: Sequence[frozenset[Mention]]
) -> float:
    """Return the largest sum of ``2 |K ∩ R| / (|K| + |R|)`` over one-to-one matchings."""
    if not response or not key:
        return 0.0
    phi = np.array([[2 * len(k & r) / (len(k) + len(r)) for r in response] for k in key])
    return float(sum(phi[pair] for pair in assign(phi)))


def _index(clusters: Sequence[frozenset[Mention]]) -> dict[Mention, int]:
    return {mention: at for at, cluster in enumerate(clusters) for mention in cluster}


def _f1(totals: NDArray[np.float64]) -> NDArray[np.float64]:
    precision = percent(totals[..., 0], totals[..., 1])
    recall = percent(totals[..., 2], totals[..., 3])
    return np.asarray(percent(2 * precision * recall, precision + recall) / 100)


def _figures(totals: NDArray[np.float64]) -> CorefFigures:
    return CorefFigures(
        precision=float(percent(totals[0], totals[1])),
        recall=float(percent(totals[2], totals[3])),
        f1=float(_f1(totals)),
    )
