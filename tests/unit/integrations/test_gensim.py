"""`KeyedVectors` hold averages of `Embedder`'s vectors and pass gensim's own files."""

import numpy as np
import pytest

from ...builders.embedding_models import random_sentences

pytest.importorskip("gensim.models", reason="extra `static` is not installed")

from elmokit.integrations.gensim import keyed_vectors


def test_a_word_has_the_average_of_its_vectors(embedder):
    sentences, expected = random_sentences(60), {}
    keyed = keyed_vectors(embedder, sentences=sentences, layers="top")
    for words, vectors in zip(sentences, embedder.embed(sentences, layers="top"), strict=True):
        for word, vector in zip(words, vectors, strict=True):
            expected.setdefault(word, []).append(vector)
    assert set(keyed.index_to_key) == set(expected)
    for word, vectors in expected.items():
        assert np.abs(keyed[word] - np.mean(vectors, axis=0)).max() < 1e-6
        assert keyed.get_vecattr(word, "count") == len(vectors)
    counts = [keyed.get_vecattr(word, "count") for word in keyed.index_to_key]
    assert counts == sorted(counts, reverse=True)


def test_chosen_words_are_found_as_the_model_reads_them(embedder, caplog):
    assert embedder.normalization == "plain-1"
    words = ["don’t", "don't", "cafe\u0301", "unseen"]
    keyed = keyed_vectors(embedder, words, sentences=[["don't", "café"], ["don’t"]])
    assert keyed.index_to_key == words[:3]
    assert [keyed.get_vecattr(word, "count") for word in words[:3]] == [2, 2, 1]
    assert "1 of 4 words" in caplog.text
    assert "'unseen'" in caplog.text
