"""Scores of senses, against counting each word by itself."""

import numpy as np
import pytest

from ...builders.probe_sources import annotated, inventory

SENSES = ["s%0", "s%1", "s%2"]


@pytest.fixture
def group():
    from elmokit.probes.sense_words import SenseWords

    random = np.random.default_rng(3)
    corpus = [
        annotated(
            f"c{n}", "w", (0, 1, "w", "NOUN", *random.choice(SENSES, random.integers(1, 3), False)),
            document=f"d{n // 4}",
        )
        for n in range(30)
    ]  # fmt: skip
    test = [annotated(f"q{n}", "w", (0, 1, "w", "NOUN", "s%1")) for n in range(5)]
    (group,) = SenseWords(corpus, test, inventory(w_n=SENSES)).groups
    return group


@pytest.fixture
def x():
    return np.random.default_rng(4).normal(size=(2, 35, 7)).astype("f4")


def cosine(a, b):
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def by_hand(group, x, fit):
    scores = np.full((len(x), len(group.documents), len(SENSES)), -np.inf)
    for way, vectors in enumerate(x.astype(np.float64)):
        for row, own in enumerate(group.documents):
            for sense in range(len(SENSES)):
                others = [
                    vectors[n]
                    for n in range(group.num_corpus)
                    if group.is_gold[n, sense] and group.documents[n] != own
                ]
                if others:
                    scores[way, row, sense] = fit(vectors[row], others)
    return scores


def test_centroids_are_those_of_the_other_documents(group, x):
    from elmokit.probes.sense_scores import centroid_scores

    expected = by_hand(group, x, lambda one, others: cosine(one, np.mean(others, axis=0)))
    np.testing.assert_allclose(centroid_scores(x, group), expected, atol=1e-6)


def test_nearest_words_are_those_of_the_other_documents(group, x, monkeypatch):
    from elmokit.probes import sense_scores

    monkeypatch.setattr(sense_scores, "_QUERIES_TOGETHER", 8)
    expected = by_hand(group, x, lambda one, others: max(cosine(one, other) for other in others))
    np.testing.assert_allclose(sense_scores.nearest_scores(x, group), expected, atol=1e-6)


def test_the_prior_is_the_share_of_the_annotations(group):
    from elmokit.probes.sense_scores import log_prior

    shares = np.exp(log_prior(group))
    possible = np.where(group.frequencies > 0, shares, 0)
    np.testing.assert_allclose(possible.sum(axis=1), 1)
    np.testing.assert_allclose(
        possible, group.frequencies / group.frequencies.sum(axis=1, keepdims=True)
    )


def test_a_decision_takes_the_first_of_equal_ones():
    from elmokit.probes.sense_scores import decide

    none = -np.inf
    scores = np.array(
        [
            [0.2, 0.9, 0.1],
            [0.9, 0.9 + 1e-7, 0.1],
            [none, none, none],
            [none, 0.5, 0.5],
            [0, 1e-3, 0],
        ]
    )
    chosen, is_tie = decide(scores)
    assert chosen.tolist() == [1, 0, -1, 1, 1]
    assert is_tie.tolist() == [False, True, False, True, False]
    chosen, is_tie = decide(np.zeros((4, 2, 0)))
    assert (chosen == -1).all()
    assert chosen.shape == is_tie.shape == (4, 2)
    assert not is_tie.any()
