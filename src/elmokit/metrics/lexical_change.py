"""How differently a word is used in two samples of its occurrences, and whether by chance.

All measures come from the cosines between occurrences:

- ``apd``: mean distance, 1 - cosine, of pairs with one occurrence from each sample (Giulianelli et
  al. 2020). ``excess`` is what it has over the mean distance of pairs within the samples, so that a
  word of many meanings that are all used in both has none.
- ``prt``: distance of the prototypes, which are the mean vectors (Kutuzov and Giulianelli 2020).
- ``jsd``: Jensen–Shannon divergence, in bits, of the shares of clusters of the uses (k-means).

A p-value is the share of random divisions of the occurrences into two samples of the same sizes
that differ at least as much. Source of the control of false discoveries: Benjamini and Hochberg
1995.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Integer

from elmokit.errors import MissingExtraError

MEASURES = ("apd", "prt", "jsd")
_ROUNDING = 1e-9
"""Divisions that differ by less are equal."""


@dataclass(frozen=True, kw_only=True)
class ChangeFigures:
    """The measures of one word, by name, and their p-values."""

    excess: float
    values: dict[str, float]
    p: dict[str, float]


def lexical_change(
    a: Float[np.ndarray, "N E"],
    b: Float[np.ndarray, "M E"],
    *,
    num_rounds: int,
    num_clusters: int,
    generator: np.random.Generator,
) -> ChangeFigures:
    """Compare two samples of at least two vectors of length 1 each."""
    vectors = np.concatenate([a, b]).astype(np.float64)
    cosines = vectors @ vectors.T
    clusters = cluster(vectors, num_clusters, generator)
    in_a = np.zeros((num_rounds + 1, len(vectors)), dtype=bool)
    in_a[0, : len(a)] = True  # the first division is the real one
    order = np.argsort(generator.random((num_rounds, len(vectors))), axis=1)
    np.put_along_axis(in_a[1:], order[:, : len(a)], True, axis=1)
    chosen = in_a.astype(np.float64)
    n, m = len(a), len(b)
    sums = chosen @ cosines  # (rounds, N + M)
    within_a = (sums * chosen).sum(axis=1)
    between = (sums * (1 - chosen)).sum(axis=1)
    within_b = cosines.sum() - within_a - 2 * between
    of_a = chosen @ np.eye(clusters.max() + 1)[clusters]  # (rounds, clusters)
    total = np.bincount(clusters)
    values = {
        "apd": 1 - between / (n * m),
        "prt": 1 - between / np.sqrt(np.maximum(within_a * within_b, 1e-30)),
        "jsd": jensen_shannon(of_a / n, (total - of_a) / m),
    }
    inside_a = 1 - (within_a[0] - n) / (n * (n - 1))
    inside_b = 1 - (within_b[0] - m) / (m * (m - 1))
    return ChangeFigures(
        excess=float(values["apd"][0] - (inside_a + inside_b) / 2),
        values={name: float(column[0]) for name, column in values.items()},
        p={
            name: float((column >= column[0] - _ROUNDING).sum() / (num_rounds + 1))
            for name, column in values.items()
        },
    )


def cluster(
    vectors: Float[np.ndarray, "N E"], num_clusters: int, generator: np.random.Generator
) -> Integer[np.ndarray, " N"]:
    """Return the cluster of each vector, by k-means (extra ``sklearn``)."""
    try:
        from sklearn.cluster import KMeans  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise MissingExtraError("scikit-learn", extra="sklearn") from error
    distinct = len(np.unique(vectors, axis=0))
    means = KMeans(
        min(num_clusters, distinct), n_init="auto", random_state=int(generator.integers(2**31))
    )
    return means.fit_predict(vectors).astype(np.int64)


def jensen_shannon(
    p: Float[np.ndarray, "*rounds K"], q: Float[np.ndarray, "*rounds K"]
) -> Float[np.ndarray, "*rounds"]:
    """Return the divergence of distributions in bits, 0 to 1."""
    middle = (p + q) / 2

    def information(r: np.ndarray) -> np.ndarray:
        ratio = np.divide(r, middle, out=np.ones_like(middle), where=r > 0)
        return (r * np.log2(ratio)).sum(axis=-1)

    return (information(p) + information(q)) / 2


def false_discovery_rates(p_values: Sequence[float]) -> list[float]:
    """Return for each p-value the smallest false discovery rate at which it counts, in order."""
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p)
    rates = p[order] * len(p) / np.arange(1, len(p) + 1)
    smallest = np.minimum.accumulate(rates[::-1])[::-1]
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(smallest, 1.0)
    return adjusted.tolist()
