"""How differently a word is used in two samples of its occurrences, and whether by chance.

- ``apd``: mean cosine distance of pairs with one occurrence from each sample (Giulianelli et al.
  2020). ``excess`` is what it has over the mean distance of pairs within the samples.
- ``prt``: cosine distance of the prototypes, the mean vectors (Kutuzov and Giulianelli 2020).

Prototypes are those of the vectors themselves. For ``apd`` the mean of the word is subtracted and
the rest whitened by the covariance within words: most of what differs between uses of any word
(syntax, position) then counts no more than what differs between few. Neither depends on which
sample an occurrence is from.

A p-value is the share of random divisions of the occurrences into two samples of the same sizes
that differ at least as much. Source of the control of false discoveries: Benjamini and Hochberg
1995.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from elmokit.shapes import Float

MEASURES = ("apd", "prt")
FEW_DIVISIONS = 10
"""Random divisions that differ as much as the samples, below which more are drawn."""
_ROUNDING = 1e-9  # divisions that differ by less are equal


@dataclass(frozen=True, kw_only=True)
class ChangeFigures:
    """The measures of one word, by name, and their p-values."""

    excess: float
    values: dict[str, float]
    p: dict[str, float]


def within_word_whitening(
    samples: Iterable[Float[np.ndarray, "N E"]],
) -> Float[np.ndarray, "E E"]:
    """Return what whitens the uses of words, from all occurrences of each word."""
    # The covariance is shrunk towards that of equal variances by E / (E + occurrences), so that few
    # occurrences are hardly whitened.
    total, count = np.zeros(()), 0
    for sample in samples:
        centered = sample - sample.mean(axis=0)
        total, count = total + centered.T @ centered, count + len(sample)
    dim = len(total)
    mean_variance = np.trace(total) / count / dim
    shrunk = (total + dim * mean_variance * np.eye(dim)) / (count + dim)
    variances, axes = np.linalg.eigh(shrunk)
    return axes / np.sqrt(np.maximum(variances, 1e-30))


def lexical_change(
    a: Float[np.ndarray, "N E"],
    b: Float[np.ndarray, "M E"],
    whitening: Float[np.ndarray, "E E"],
    *,
    num_rounds: int,
    most_rounds: int = 0,
    generator: np.random.Generator,
) -> ChangeFigures:
    """Compare two samples of at least two vectors each.

    While fewer than `FEW_DIVISIONS` random divisions differ as much as the samples by some measure,
    more than ``num_rounds`` are drawn, up to about ``most_rounds``: p-values of changed words must
    be small enough to count among many words. Source: Besag and Clifford 1991.
    """
    vectors, n, m = np.concatenate([a, b]), len(a), len(b)
    uses = uses_of(vectors, whitening)
    both = unit_rows(vectors)
    in_a = np.arange(n + m)[None] < n  # the real division
    values, sums = _measures(both, uses, in_a)
    as_much, total = np.ones(len(MEASURES)), 1  # the real one is one of them
    while total == 1 or (as_much.min() <= FEW_DIVISIONS and total < most_rounds):
        order = np.argsort(generator.random((num_rounds, n + m)), axis=1)
        in_a = np.zeros(order.shape, dtype=bool)
        np.put_along_axis(in_a, order[:, :n], True, axis=1)
        drawn, _ = _measures(both, uses, in_a)
        as_much += (drawn >= values - _ROUNDING).sum(axis=1)
        total += num_rounds
    # a cosine with itself is 1, but for a use that is just the mean of the word, 0
    own = (uses**2).sum(axis=1)
    within_a, within_b, between = (part[0] for part in sums)
    inside = (within_a - own[:n].sum()) / (n * (n - 1))
    inside += (within_b - own[n:].sum()) / (m * (m - 1))
    return ChangeFigures(
        excess=float(inside / 2 - between / (n * m)),
        values=dict(zip(MEASURES, values[:, 0].tolist(), strict=True)),
        p=dict(zip(MEASURES, (as_much / total).tolist(), strict=True)),
    )


def _measures(
    vectors: np.ndarray, uses: np.ndarray, in_a: np.ndarray
) -> tuple[Float[np.ndarray, "M rounds"], tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Return the measures of each division, in the order of `MEASURES`, and the sums of uses."""
    members = in_a.astype(np.float64)
    n = int(in_a[0].sum())
    m = len(uses) - n
    within_a, within_b, between = _sums(vectors, members)
    prototypes = between / np.sqrt(np.maximum(within_a * within_b, 1e-30))
    sums = _sums(uses, members)
    return np.stack([1 - sums[2] / (n * m), 1 - prototypes]), sums


def uses_of(
    vectors: Float[np.ndarray, "N E"], whitening: Float[np.ndarray, "E E"]
) -> Float[np.ndarray, "N E"]:
    """Return the vectors of a word without its mean, whitened, of length 1."""
    centered = vectors - vectors.mean(axis=0)
    # rounding is no difference
    centered[np.linalg.norm(centered, axis=1) < 1e-6 * np.linalg.norm(vectors, axis=1)] = 0
    return unit_rows(centered @ whitening)


def unit_rows(x: Float[np.ndarray, "*N E"]) -> Float[np.ndarray, "*N E"]:
    """Return rows of length 1; zero rows stay zero."""
    return x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1e-12)


def _sums(
    vectors: Float[np.ndarray, "N E"], members: Float[np.ndarray, "rounds N"]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the sums of the cosines within the members, within the others, and between them."""
    cosines = vectors @ vectors.T
    sums = members @ cosines  # (rounds, N)
    # all pairs of all divisions come from one product, so no division needs its own matrix
    within = (sums * members).sum(axis=1)
    between = (sums * (1 - members)).sum(axis=1)
    return within, cosines.sum() - within - 2 * between, between


def false_discovery_rates(p_values: Sequence[float]) -> list[float]:
    """Return for each p-value the smallest false discovery rate at which it counts, in order."""
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p)
    rates = p[order] * len(p) / np.arange(1, len(p) + 1)
    smallest = np.minimum.accumulate(rates[::-1])[::-1]
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(smallest, 1.0)
    return adjusted.tolist()
