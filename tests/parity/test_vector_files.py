"""Files of word vectors: ours against gensim's readers and writers."""

import numpy as np
import pytest

from elmokit.vectors.fasttext_file import Subwords
from elmokit.vectors.training import VectorsConfig, train_vectors
from elmokit.vectors.vector_files import read_vectors, write_vectors

from ..builders.training_models import write_text

SENTENCES = [
    ["the", "river", "bank", "was", "green"],
    ["the", "bank", "lent", "me", "money"],
    ["강", "에서", "배", "를", "타", "고", "갔", "다"],
    ["배", "를", "깎", "아", "먹", "었", "다", "👍", "naïve"],
] * 30
UNSEEN = ["banking", "강에서", "rivers", "ü", "👍👍"]


@pytest.fixture(scope="module")
def word2vec():
    from gensim.models import Word2Vec

    return Word2Vec(SENTENCES, vector_size=20, min_count=1, workers=1, seed=1, epochs=2)


@pytest.fixture(scope="module")
def fasttext():
    from gensim.models import FastText

    return FastText(
        SENTENCES, vector_size=20, min_count=1, workers=1, seed=1, epochs=2, bucket=300, sg=1
    )


@pytest.mark.parametrize("binary", [True, False])
def test_gensims_word2vec_files_are_read(word2vec, tmp_path, binary):
    path = tmp_path / "vectors"
    word2vec.wv.save_word2vec_format(str(path), binary=binary)
    found = read_vectors(path)
    assert found.words == word2vec.wv.index_to_key
    np.testing.assert_array_equal(found.values[2:], word2vec.wv.vectors)


@pytest.mark.parametrize("name", ["v.bin", "v.txt"])
def test_gensim_reads_what_we_write(word2vec, tmp_path, name):
    from gensim.models import KeyedVectors

    write_vectors(tmp_path / name, word2vec.wv.index_to_key, word2vec.wv.vectors)
    found = KeyedVectors.load_word2vec_format(str(tmp_path / name), binary=name.endswith(".bin"))
    assert found.index_to_key == word2vec.wv.index_to_key
    np.testing.assert_array_equal(found.vectors, word2vec.wv.vectors)


def test_fasttext_models_are_read_as_gensim_reads_them(fasttext, tmp_path):
    from gensim.models.fasttext import load_facebook_vectors, save_facebook_model

    path = tmp_path / "model.bin"
    save_facebook_model(fasttext, str(path))
    theirs = load_facebook_vectors(str(path))
    ours = read_vectors(path)
    assert ours.words == theirs.index_to_key
    np.testing.assert_allclose(ours.values[2:], theirs.vectors, atol=1e-6)
    ours = read_vectors(path, only=[*UNSEEN, "bank"])
    assert set(ours.words) == {*UNSEEN, "bank"}
    for word in ours.words:
        np.testing.assert_allclose(
            ours.values[ours.id_of(word)], theirs.get_vector(word), atol=1e-6, err_msg=word
        )


@pytest.mark.parametrize("lengths", [(1, 4), (3, 6), (2, 2)])
def test_ngrams_fall_into_the_buckets_that_gensim_finds(lengths):
    from gensim.models.fasttext import ft_ngram_hashes

    words = {word for sentence in SENTENCES for word in sentence} | set(UNSEEN)
    for word in sorted(words):
        ours = Subwords(0, 2_000_000, *lengths).rows(word)
        assert sorted(ours) == sorted(ft_ngram_hashes(word, *lengths, 2_000_000)), word


def test_training_is_gensims_own(tmp_path):
    """The same sentences, words and settings give the very vectors of a direct call."""
    from gensim.models import Word2Vec

    counted = [[word] * (index + 1) for index, word in enumerate("fedcba")]
    sentences = [[*SENTENCES[index % 4], *row] for index, row in enumerate(counted * 40)]
    corpus = write_text(tmp_path / "corpus.txt", sentences)
    config = VectorsConfig(dim=12, window=3, min_count=30, epochs=2, negative=4, seed=5)
    train_vectors([corpus], tmp_path / "v.bin", config, tokenizer="whitespace")
    ours = read_vectors(tmp_path / "v.bin")
    direct = Word2Vec(
        vector_size=12, window=3, min_count=30, epochs=2, negative=4, seed=5, workers=1, sg=1,
        sorted_vocab=0,
    )  # fmt: skip
    counts = {word: sum(row.count(word) for row in sentences) for word in ours.words}
    assert sorted(counts.values(), reverse=True) == list(counts.values())
    direct.build_vocab_from_freq(counts, corpus_count=len(sentences))
    direct.train(sentences, total_words=sum(map(len, sentences)), epochs=2)
    assert direct.wv.index_to_key == ours.words
    np.testing.assert_array_equal(ours.values[2:], direct.wv.vectors)
