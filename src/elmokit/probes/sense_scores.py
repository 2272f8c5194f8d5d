"""How well each sense fits each word of a lemma, and the decision between them.

S representations, R words of one lemma (the first N from the corpus), K candidate senses. A sense
that no document but the word's own has scores -inf.
"""

import numpy as np
from jaxtyping import Bool, Float, Int

from elmokit.probes.rows import unit_rows
from elmokit.probes.sense_words import LemmaGroup

TIE_TOLERANCE = 1e-5
"""Scores this close are equal: vectors are computed to about 1e-6, so less is rounding."""
_QUERIES_TOGETHER = 512


def centroid_scores(x: Float[np.ndarray, "S R X"], group: LemmaGroup) -> Float[np.ndarray, "S R K"]:
    """Return the cosine of each word with the mean vector of each sense.

    Means are those of the other documents: the sums of a document are subtracted from the total.
    Source: Peters et al. 2018, section 5.3.
    """
    has_sense = group.is_gold.T.astype(x.dtype)  # (K, R)
    total = np.zeros((len(x), len(has_sense), x.shape[2]))  # (S, K, X)
    for rows in group.document_runs():
        if rows.start < group.num_corpus:
            total += _sums(x, has_sense, rows)
    scores = np.full((*x.shape[:2], len(has_sense)), -np.inf)
    for rows in group.document_runs():
        is_corpus = rows.start < group.num_corpus
        of_others = total - _sums(x, has_sense, rows) if is_corpus else total
        means = unit_rows(of_others).swapaxes(1, 2)  # (S, X, K)
        scores[:, rows] = unit_rows(x[:, rows]) @ means
    return np.where(group.frequencies > 0, scores, -np.inf)


def _sums(
    x: Float[np.ndarray, "S R X"], has_sense: Float[np.ndarray, "K R"], rows: slice
) -> Float[np.ndarray, "S K X"]:
    return (has_sense[:, rows] @ x[:, rows]).astype(np.float64)


def nearest_scores(x: Float[np.ndarray, "S R X"], group: LemmaGroup) -> Float[np.ndarray, "S R K"]:
    """Return the cosine of each word with the nearest word of each sense in other documents."""
    units = unit_rows(x)
    corpus = units[:, : group.num_corpus].swapaxes(1, 2)  # (S, X, N)
    documents = group.documents[: group.num_corpus]
    has_sense = group.is_gold[: group.num_corpus].T  # (K, N)
    scores = np.full((*x.shape[:2], len(has_sense)), -np.inf)
    for start in range(0, x.shape[1], _QUERIES_TOGETHER):
        rows = slice(start, start + _QUERIES_TOGETHER)
        is_own = group.documents[rows, None] == documents  # (B, N)
        for way in range(len(x)):
            cosines = np.where(is_own, -np.inf, units[way, rows] @ corpus[way])  # (B, N)
            for sense, words in enumerate(has_sense):
                scores[way, rows, sense] = cosines[:, words].max(axis=1, initial=-np.inf)
    return scores


def log_prior(group: LemmaGroup) -> Float[np.ndarray, "R K"]:
    """Return ln of the share of each sense among the annotations of the other documents."""
    frequencies = group.frequencies
    totals = np.maximum(frequencies.sum(axis=1, keepdims=True), 1)
    return np.log(np.where(frequencies > 0, frequencies, totals) / totals)


def frequency_scores(group: LemmaGroup) -> Float[np.ndarray, "R K"]:
    """Return how often the other documents have each sense."""
    return np.where(group.frequencies > 0, group.frequencies, -np.inf)


def decide(
    scores: Float[np.ndarray, "*A K"],
) -> tuple[Int[np.ndarray, "*A"], Bool[np.ndarray, "*A"]]:
    """Return the best candidate, -1 if there is none, and whether others equal it.

    Of equal ones, within `TIE_TOLERANCE`, the first of the inventory is taken.
    """
    best = scores.max(axis=-1, keepdims=True, initial=-np.inf)
    is_best = (scores >= best - TIE_TOLERANCE) & (scores > -np.inf)
    if scores.shape[-1] == 0:
        return np.full(scores.shape[:-1], -1), np.zeros(scores.shape[:-1], dtype=bool)
    chosen = np.where(is_best.any(axis=-1), is_best.argmax(axis=-1), -1)
    return chosen, is_best.sum(axis=-1) > 1
