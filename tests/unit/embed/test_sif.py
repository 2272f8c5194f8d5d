import numpy as np
import pytest

from elmokit.embed.embedder import Embedder
from elmokit.embed.sentences import SMOOTHING, SifStatistics, lower_case_shares

from ...builders.embedding_models import random_sentences, toy_model


@pytest.fixture(scope="module")
def embedder():
    return Embedder(toy_model(vocab=True))


def random_statistics(**options):
    rng = np.random.default_rng(0)
    words = [f"w{k}" for k in range(200)]
    vectors = rng.normal(size=(200, 8)) * [9, 3, 1, 1, 1, 1, 1, 0.1] + 5
    shares = lower_case_shares((word, 1 / (k + 1)) for k, word in enumerate(words))
    return words, shares, vectors, SifStatistics.measure(words, shares, vectors, **options)


def covariance(words, shares, rows):
    weights = np.array([shares[w] * (SMOOTHING / (SMOOTHING + shares[w])) ** 2 for w in words])
    weights /= weights.sum()
    centered = rows - weights @ rows
    return centered.T @ (centered * weights[:, None])


def test_whitened_words_have_no_correlation():
    words, shares, vectors, statistics = random_statistics()
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    rows = (unit - statistics.mean) @ statistics.whitening
    assert np.abs(covariance(words, shares, rows) - np.eye(8)).max() < 1e-3


def test_removed_components_are_gone_and_the_others_as_they_were():
    words, shares, vectors, statistics = random_statistics(remove=2)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    rows = (unit - statistics.mean) @ statistics.whitening
    before = np.linalg.eigvalsh(covariance(words, shares, unit))
    after = np.linalg.eigvalsh(covariance(words, shares, rows))
    assert np.abs(after[:2]).max() < 1e-9
    assert after[2:] == pytest.approx(before[:-2], abs=1e-6)


def test_a_sentence_is_the_weighted_mean_of_its_words():
    words, shares, vectors, statistics = random_statistics()
    chosen = [words[0].upper(), words[150], "unseen"]
    rows = statistics.words(vectors[[0, 150, 7]].astype(np.float32), chosen)
    unit = vectors[[0, 150, 7]] / np.linalg.norm(vectors[[0, 150, 7]], axis=1, keepdims=True)
    white = (unit - statistics.mean) @ statistics.whitening
    weights = [SMOOTHING / (SMOOTHING + p) for p in (shares["w0"], shares["w150"], 0.0)]
    assert np.abs(rows - white * np.array(weights)[:, None]).max() < 1e-4
    pooled = statistics.pool(vectors[[0, 150, 7]].astype(np.float32), chosen)
    assert np.abs(pooled - rows.mean(axis=0)).max() < 1e-5


@pytest.mark.parametrize("layers", [None, 0, "all", "top"])
def test_a_sentence_has_one_vector_whatever_its_company(embedder, layers):
    sentences = [*random_sentences(12), []]
    together = embedder.embed_sentences(sentences, pooling="sif", layers=layers)
    alone = [embedder.embed_sentences([s], pooling="sif", layers=layers)[0] for s in sentences]
    assert np.abs(together - np.array(alone)).max() < 1e-5
    assert not together[-1].any()
