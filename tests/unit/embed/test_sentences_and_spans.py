"""Vectors of sentences and spans: mean, maximum, SIF."""

import numpy as np
import pytest

from elmokit.embed.embedder import Embedder
from elmokit.embed.sentences_and_spans import SMOOTHING, SifStatistics, lower_case_shares
from elmokit.text.tokenizers.registry import TokenizerConfig

from ...builders.embedding_models import random_sentences, toy_model


@pytest.fixture(scope="module")
def plain():
    return Embedder(toy_model())


@pytest.fixture(scope="module")
def embedder():
    return Embedder(toy_model(tokenizer=TokenizerConfig(name="simple")))


@pytest.mark.parametrize("pooling", ["mean", "max"])
@pytest.mark.parametrize("layers", ["all", "top", "average", 0])
def test_a_sentence_is_pooled_over_its_own_words(plain, pooling, layers):
    sentences = [*random_sentences(20), []]  # zeros
    found = plain.embed_sentences(sentences, pooling=pooling, layers=layers, batch_tokens=30)
    words = plain.embed(sentences, layers=layers)
    for one, vectors in zip(found, words, strict=True):
        if not vectors.size:
            assert not one.any()
            continue
        expected = getattr(vectors.astype(np.float64), pooling)(axis=-2)
        assert np.abs(one - expected).max() < 1e-6
    assert found.dtype == np.float32


def test_without_a_vocabulary_it_is_the_mean_of_the_mean_of_the_layers(plain):
    found = plain.embed_sentences(["I sat by the bank", "배 를"])
    assert found.shape == (2, plain.dim)
    layers = plain.embed(["I sat by the bank"])[0]
    assert np.abs(found[0] - layers.mean(axis=(0, 1))).max() < 1e-6


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


def of_length_1(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def whitened(statistics, vectors):
    return (of_length_1(vectors) - statistics.mean) @ statistics.whitening


def test_whitened_words_have_no_correlation():
    words, shares, vectors, statistics = random_statistics()
    rows = whitened(statistics, vectors)
    assert np.abs(covariance(words, shares, rows) - np.eye(8)).max() < 1e-3


def test_removed_components_are_gone_and_the_others_as_they_were():
    words, shares, vectors, statistics = random_statistics(remove=2)
    before = np.linalg.eigvalsh(covariance(words, shares, of_length_1(vectors)))
    after = np.linalg.eigvalsh(covariance(words, shares, whitened(statistics, vectors)))
    assert np.abs(after[:2]).max() < 1e-9
    assert after[2:] == pytest.approx(before[:-2], abs=1e-6)


def test_a_sentence_is_the_weighted_mean_of_its_words():
    words, shares, vectors, statistics = random_statistics()
    chosen, vectors = [words[0].upper(), words[150], "unseen"], vectors[[0, 150, 7]]
    rows = statistics.words(vectors.astype(np.float32), chosen)
    weights = [SMOOTHING / (SMOOTHING + p) for p in (shares["w0"], shares["w150"], 0.0)]
    expected = whitened(statistics, vectors) * np.array(weights)[:, None]
    assert np.abs(rows - expected).max() < 1e-4
    pooled = statistics.pool(vectors.astype(np.float32), chosen)
    assert np.abs(pooled - rows.mean(axis=0)).max() < 1e-5


@pytest.mark.parametrize("layers", [None, 0, "all", "top"])
def test_a_sentence_has_one_vector_whatever_its_company(layers):
    with_words, sentences = Embedder(toy_model(vocab=True)), [*random_sentences(12), []]
    together = with_words.embed_sentences(sentences, pooling="sif", layers=layers)
    alone = [with_words.embed_sentences([s], pooling="sif", layers=layers)[0] for s in sentences]
    assert np.abs(together - np.array(alone)).max() < 1e-5
    assert not together[-1].any()


TEXT = "I sat by the bank. It was “wide”,\nand the river\u200b ran on.\n\nWe left, naïve as ever."
PARTS = {"bank": (4, 5), "I sat by the bank.": (0, 6), "“wide”,\nand": (8, 13)}


@pytest.mark.parametrize("layers", ["all", "average", 0])
@pytest.mark.parametrize("pooling", ["mean", "max"])
def test_a_span_is_pooled_over_its_words_in_the_whole_text(embedder, layers, pooling):
    words, (vectors,) = embedder.tokenizer.tokenize(TEXT), embedder.embed([TEXT], layers=layers)
    assert words[8:13] == ['"', "wide", '"', ",", "and"]
    spans = [(TEXT.index(part), TEXT.index(part) + len(part)) for part in PARTS]
    how = {"pooling": pooling, "layers": layers}
    pooled = embedder.embed_spans(TEXT, spans, **how)
    rows = (vectors[..., first:last, :].astype(np.float64) for first, last in PARTS.values())
    assert pooled.dtype == np.float32
    np.testing.assert_allclose(pooled, [getattr(r, pooling)(axis=-2) for r in rows], atol=1e-6)
    np.testing.assert_array_equal(embedder.embed_spans(words, PARTS.values(), **how), pooled)
    alone = embedder.embed_sentences(["I sat by the bank."], **how)
    assert np.allclose(pooled[1], alone[0], atol=1e-6) == (layers == 0)  # context counts


@pytest.mark.parametrize("span", [(5, 500), (-3, 2), (2, 2), (4, 2), (1, 2)])
def test_spans_outside_the_text_or_without_a_word_are_refused(embedder, span):
    with pytest.raises(ValueError, match=rf"spans\[1\].* \[{span[0]}, .*{len(TEXT)} characters"):
        embedder.embed_spans(TEXT, [(0, 1), span])
    with pytest.raises(ValueError, match=r"spans\[0\].* \[1, 3\).* 2 words"):
        embedder.embed_spans(["I", "sat"], [(1, 3)])
