"""`KeyedVectors` hold averages of `Embedder`'s vectors and pass gensim's own files."""

import numpy as np
import pytest

from elmokit.embed.embedder import Embedder
from elmokit.errors import InputError
from elmokit.vectors.vector_files import read_vectors

from ...builders.embedding_models import WORDS, random_sentences, toy_model

gensim_models = pytest.importorskip("gensim.models", reason="extra `static` is not installed")

from elmokit.integrations.gensim import keyed_vectors  # noqa: E402


@pytest.fixture(scope="module")
def embedder():
    return Embedder(toy_model())


@pytest.fixture(scope="module")
def sentences():
    return random_sentences(60)


def averages(embedder, sentences):
    found = {}
    for words, vectors in zip(sentences, embedder.embed(sentences, layers="top"), strict=True):
        for word, vector in zip(words, vectors, strict=True):
            found.setdefault(word, []).append(vector)
    return found


def test_a_word_has_the_average_of_its_vectors(embedder, sentences):
    keyed = keyed_vectors(embedder, sentences=sentences, layers="top")
    expected = averages(embedder, sentences)
    assert set(keyed.index_to_key) == set(expected)
    for word, vectors in expected.items():
        assert np.abs(keyed[word] - np.mean(vectors, axis=0)).max() < 1e-6
        assert keyed.get_vecattr(word, "count") == len(vectors)
    counts = [keyed.get_vecattr(word, "count") for word in keyed.index_to_key]
    assert counts == sorted(counts, reverse=True)


def test_a_vocabulary_of_more_words_than_the_first_table(embedder):
    words = [f"w{number}" for number in range(2500)]
    sentences = [words[i : i + 5] for i in range(0, 2500, 5)]
    keyed = keyed_vectors(embedder, sentences=sentences)
    assert sorted(keyed.index_to_key) == sorted(words)
    for i in (0, 1023, 1024, 2499):
        expected = embedder.embed([sentences[i // 5]], layers="average")[0][i % 5]
        assert np.abs(keyed[words[i]] - expected).max() < 1e-6


def test_words_alone_are_sentences_of_one_word(embedder):
    keyed = keyed_vectors(embedder, WORDS)
    assert keyed.index_to_key == WORDS
    for word, vectors in zip(WORDS, embedder.embed([[w] for w in WORDS], layers="average"),
                             strict=True):  # fmt: skip
        assert np.abs(keyed[word] - vectors[0]).max() < 1e-6


def test_spellings_of_one_word_are_one_sentence(embedder):
    keyed = keyed_vectors(embedder, ["caf\u00e9", "cafe\u0301", "a"])
    assert [keyed.get_vecattr(word, "count") for word in keyed.index_to_key] == [1, 1, 1]


def test_chosen_words_keep_their_order_and_rare_ones_are_left_out(embedder, sentences):
    counts = {word: len(found) for word, found in averages(embedder, sentences).items()}
    least = sorted(counts.values())[len(counts) // 2]
    keyed = keyed_vectors(embedder, ["river", "unseen", *WORDS], sentences=sentences,
                          min_count=least)  # fmt: skip
    wanted = dict.fromkeys(["river", *WORDS])
    assert keyed.index_to_key == [word for word in wanted if counts.get(word, 0) >= least]


def test_chosen_words_are_found_as_the_model_reads_them(embedder, caplog):
    assert embedder.normalization == "plain-1"
    words = ["don’t", "don't", "cafe\u0301", "unseen"]
    keyed = keyed_vectors(embedder, words, sentences=[["don't", "café"], ["don’t"]])
    assert keyed.index_to_key == words[:3]
    assert [keyed.get_vecattr(word, "count") for word in words[:3]] == [2, 2, 1]
    assert "1 of 4 words" in caplog.text
    assert "'unseen'" in caplog.text


def test_files_of_gensim_keep_the_vectors(embedder, sentences, tmp_path):
    keyed = keyed_vectors(embedder, sentences=sentences)
    keyed.save(str(tmp_path / "vectors.kv"))
    keyed.save_word2vec_format(str(tmp_path / "vectors.bin"), binary=True)
    for loaded in (
        gensim_models.KeyedVectors.load(str(tmp_path / "vectors.kv")),
        gensim_models.KeyedVectors.load_word2vec_format(tmp_path / "vectors.bin", binary=True),
    ):
        assert loaded.index_to_key == keyed.index_to_key
        assert np.array_equal(loaded.vectors, keyed.vectors)
        assert loaded.most_similar("river") == keyed.most_similar("river")
    ours = read_vectors(tmp_path / "vectors.bin")
    assert np.array_equal(ours.values[2:], keyed.vectors)


def test_bad_input_is_refused(embedder):
    with pytest.raises(InputError, match="`words`, `sentences`"):
        keyed_vectors(embedder)
    with pytest.raises(InputError, match="occurs 2 or more"):
        keyed_vectors(embedder, sentences=[["I", "sat"]], min_count=2)
    with pytest.raises(InputError, match="`words`, `sentences`"):
        keyed_vectors(embedder, [])
    with pytest.raises(InputError, match="one vector per word"):
        keyed_vectors(embedder, WORDS, layers="all")
    with pytest.raises(TypeError, match="`words` must be a list"):
        keyed_vectors(embedder, "bank")
    with pytest.raises(TypeError, match="one string"):
        keyed_vectors(embedder, sentences="the bank")
