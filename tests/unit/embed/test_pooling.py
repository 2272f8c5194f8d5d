import numpy as np
import pytest

from elmokit.embed.embedder import Embedder
from elmokit.embed.sentences import PLAIN_POOLINGS

from ...builders.embedding_models import random_sentences, toy_model


@pytest.fixture(scope="module")
def embedder():
    return Embedder(toy_model())


@pytest.mark.parametrize("pooling", PLAIN_POOLINGS)
@pytest.mark.parametrize("layers", ["all", "top", "average", 0])
def test_a_sentence_is_pooled_over_its_own_words(embedder, pooling, layers):
    sentences = [*random_sentences(20), []]  # zeros
    found = embedder.embed_sentences(sentences, pooling=pooling, layers=layers, batch_tokens=30)
    words = embedder.embed(sentences, layers=layers)
    for one, vectors in zip(found, words, strict=True):
        if not vectors.size:
            assert not one.any()
            continue
        expected = getattr(vectors.astype(np.float64), pooling)(axis=-2)
        assert np.abs(one - expected).max() < 1e-6
    assert found.dtype == np.float32


def test_without_a_vocabulary_it_is_the_mean_of_the_mean_of_the_layers(embedder):
    found = embedder.embed_sentences(["I sat by the bank", "배 를"])
    assert found.shape == (2, embedder.dim)
    layers = embedder.embed(["I sat by the bank"])[0]
    assert np.abs(found[0] - layers.mean(axis=(0, 1))).max() < 1e-6
