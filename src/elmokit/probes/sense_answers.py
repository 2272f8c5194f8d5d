"""Which words a representation disambiguates correctly, by each method.

The weight of the prior is chosen on the corpus alone: for the test set, the best on the whole
corpus; for a document of the corpus, the best on all other documents.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elmokit.probes.sense_scores import (
    centroid_scores,
    decide,
    frequency_scores,
    log_prior,
    nearest_scores,
)
from elmokit.probes.sense_words import LemmaGroup, SenseWords
from elmokit.probes.vector_sources import VectorSource
from elmokit.probes.vector_table import vector_table

PRIOR_WEIGHTS = (0.0, *(2.0**power for power in range(-8, 1)))
"""Possible weights of ln p(sense) beside the cosine of 1-NN; with 0 there is no prior."""


@dataclass(frozen=True)
class Answers:
    """What M methods say of all W words: one, or centroid, 1-NN and 1-NN with the prior."""

    name: str
    """Of the representation."""
    is_right: NDArray[np.bool_]
    """(M, W)"""
    is_tie: NDArray[np.bool_]
    """(M, W) whether several senses were equally good."""
    prior_weight: float | None = None
    """On the test set."""
    uses_corpus: bool = True
    """False: the inventory alone answers."""


def first_senses(name: str, words: SenseWords) -> Answers:
    """Answer with the inventory's first sense."""
    no_tie = np.zeros((1, len(words)), dtype=bool)
    return Answers(name, words.first_is_gold[None], no_tie, uses_corpus=False)


def most_frequent_senses(name: str, words: SenseWords) -> Answers:
    """Answer with the most frequent sense of the corpus, or of its other documents."""
    decisions = _Decisions(words, 1, 1)
    for group in words.groups:
        decisions.add(group, frequency_scores(group)[None, None])
    return Answers(name, decisions.is_right[0], decisions.is_tie[0])


def answers_by_vectors(source: VectorSource, words: SenseWords) -> list[Answers]:
    """Answer by each representation of a source, whose sentences are embedded once."""
    weights = np.array(PRIOR_WEIGHTS)
    decisions = _Decisions(words, len(source.names), 1 + len(weights))
    with vector_table(source, words) as table:
        for group in words.groups:
            if group.is_ambiguous:
                x = np.asarray(table[:, group.rows])  # (S, R, X)
                centroid, nearest = centroid_scores(x, group), nearest_scores(x, group)
            else:  # every method takes the only sense, if there is one
                shape = len(source.names), *group.is_gold.shape
                centroid = nearest = np.broadcast_to(frequency_scores(group), shape)
            with_prior = nearest[:, None] + weights[:, None, None] * log_prior(group)
            decisions.add(group, np.concatenate([centroid[:, None], with_prior], axis=1))
    return [
        _with_chosen_weights(words, name, is_right, is_tie)
        for name, is_right, is_tie in zip(
            source.names, decisions.is_right, decisions.is_tie, strict=True
        )
    ]


class _Decisions:
    """Right answers and ties: (S, methods, W)."""

    def __init__(self, words: SenseWords, num_names: int, num_methods: int) -> None:
        self._first_is_gold = words.first_is_gold
        self.is_right = np.zeros((num_names, num_methods, len(words)), dtype=bool)
        self.is_tie = np.zeros_like(self.is_right)

    def add(self, group: LemmaGroup, scores: NDArray[np.float64]) -> None:
        """Decide by the scores of a lemma's words: (S, methods, R, K)."""
        chosen, self.is_tie[..., group.rows] = decide(scores)
        # one more column, for words without a candidate: -1 is the last one
        first_is_gold = self._first_is_gold[group.rows, None]
        is_right = np.concatenate([group.is_gold, first_is_gold], axis=1)
        self.is_right[..., group.rows] = is_right[np.arange(len(is_right)), chosen]


def _with_chosen_weights(
    words: SenseWords, name: str, is_right: NDArray[np.bool_], is_tie: NDArray[np.bool_]
) -> Answers:
    """Choose among the answers by centroid and by 1-NN with each weight: (1 + weights, W).

    Of equally good weights the smallest is taken.
    """
    in_corpus = ~words.is_test
    documents = words.units[in_corpus]
    by_document = np.stack([
        np.bincount(documents, weights=one[in_corpus], minlength=words.num_documents)
        for one in is_right[1:]
    ])  # (weights, documents)  # fmt: skip
    total = by_document.sum(axis=1)
    best = int(total.argmax())
    chosen = np.full(len(words), best)
    chosen[in_corpus] = (total[:, None] - by_document).argmax(axis=0)[documents]
    every = np.arange(len(words))
    return Answers(
        name,
        *(np.stack([*one[:2], one[1 + chosen, every]]) for one in (is_right, is_tie)),
        prior_weight=PRIOR_WEIGHTS[best],
    )
