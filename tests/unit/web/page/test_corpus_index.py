import numpy as np
import pytest

import elmokit
from elmokit.errors import FormatError
from elmokit.web.page.corpus_index import CorpusIndex

from ....builders.training_models import random_sentences, toy_model

SENTENCES = [one for one in random_sentences(60) if len(one) > 2]


@pytest.fixture(scope="module")
def model():
    return toy_model()


def index_of(model, tmp_path, sentences, **options):
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join(map(" ".join, sentences)) + "\n", encoding="utf-8")
    index = CorpusIndex(model, [path], **options)
    assert index.wait(60)
    return index


def test_neighbors_are_those_of_the_whole_comparison(model, tmp_path):
    index = index_of(model, tmp_path, [*SENTENCES, *SENTENCES])
    query = SENTENCES[0]
    found = index.nearest(query, 1, layer=1, top=5)
    distinct = list(dict.fromkeys(map(tuple, SENTENCES)))
    assert (found.num_sentences, found.is_whole) == (len(distinct), True)
    assert found.num_words == sum(map(len, distinct))
    embedder = elmokit.Embedder(model)
    target = embedder.embed([query])[0][:, 1]
    best = {}
    for sentence in distinct[1:]:
        layers = embedder.embed([list(sentence)])[0]
        best[sentence] = max(cosine(target[1], vector) for vector in layers[1])
    expected = sorted(best.values(), reverse=True)[:5]
    assert [one.similarity for one in found.contextual] == pytest.approx(expected, abs=2e-3)
    assert all(one.words != query for one in found.contextual)
    for one in found.contextual:
        layers = embedder.embed([one.words])[0]
        assert cosine(target[1], layers[1, one.index]) == pytest.approx(one.similarity, abs=2e-3)
    assert len(found.static) == 5
    assert all(one.words != [query[1]] for one in found.static)
    similarities = [one.similarity for one in found.static]
    assert similarities == sorted(similarities, reverse=True)


def cosine(a, b):
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def test_a_corpus_of_one_sentence_has_no_neighbor_of_that_sentence(model, tmp_path):
    index = index_of(model, tmp_path, SENTENCES[:1])
    found = index.nearest(SENTENCES[0], 0, layer=1, top=5)
    assert (found.contextual, found.num_sentences) == ([], 1)
    other = index.nearest(["neverseen"], 0, layer=1, top=5)
    assert [one.words for one in other.contextual] == [SENTENCES[0]]


def test_an_empty_corpus_is_told(model, tmp_path):
    with pytest.raises(FormatError, match=r"corpus\.txt"):
        index_of(model, tmp_path, [])


def test_what_fits_of_a_corpus_is_indexed_sentence_by_sentence(model, tmp_path):
    path = tmp_path / "long.txt"
    lines = [" ".join(f"{letter}{n}" for n in range(140)) for letter in "wv"]
    path.write_text("\n".join([*lines, "last one"]), encoding="utf-8")
    num_bytes = model.output_dim * (2 * (model.num_layers - 1) + 4)  # of a word and its form
    index = CorpusIndex(model, [path], max_bytes=200 * num_bytes)
    assert index.wait(60)
    found = index.nearest(["w0"], 0, layer=1, top=3)
    assert (found.num_sentences, found.num_words, found.is_whole) == (1, 140, False)
    with pytest.raises(FormatError, match="more words than the index holds"):
        CorpusIndex(model, [path], max_bytes=100 * num_bytes).wait(60)


def test_vectors_of_word_forms_count_as_well(model, tmp_path):
    whole = index_of(model, tmp_path, SENTENCES)
    in_context = sum(layer.nbytes for layer in whole._layers)
    forms = whole._token_vectors.nbytes
    for max_bytes, is_whole in ((in_context + forms, True), (in_context + forms - 1, False)):
        index = index_of(model, tmp_path, SENTENCES, max_bytes=max_bytes)
        assert index.nearest(SENTENCES[0], 0, layer=1, top=1).is_whole == is_whole


def test_a_file_that_cannot_be_read_is_told(model, tmp_path):
    with pytest.raises(FileNotFoundError):
        CorpusIndex(model, [tmp_path / "missing.txt"]).wait(60)
