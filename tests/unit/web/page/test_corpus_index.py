import numpy as np
import pytest

import elmokit
from elmokit.errors import FormatError
from elmokit.web.page.corpus_index import index_corpus

from ....builders.training_models import random_sentences, toy_model

SENTENCES = [sentence for sentence in random_sentences(60) if len(sentence) > 2]


@pytest.fixture(scope="module")
def model():
    return toy_model()


@pytest.fixture
def index_of(model, tmp_path):
    def index_of(sentences, **options):
        path = tmp_path / "corpus.txt"
        path.write_text("\n".join(map(" ".join, sentences)) + "\n", encoding="utf-8")
        return index_corpus(elmokit.Embedder(model), [path], **options)

    return index_of


def cosine(a, b):
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def test_neighbors_are_those_of_the_whole_comparison(model, index_of):
    index = index_of([*SENTENCES, *SENTENCES])
    query = SENTENCES[0]
    answer = index.nearest(query, 1, layer=1, top=5)
    distinct = list(dict.fromkeys(map(tuple, SENTENCES)))
    assert (answer["num_sentences"], answer["is_whole"]) == (len(distinct), True)
    assert answer["num_words"] == sum(map(len, distinct))
    embedder = elmokit.Embedder(model)
    layers = {sentence: embedder.embed([list(sentence)])[0] for sentence in distinct}
    target = layers[tuple(query)][:, 1]
    best = [max(cosine(target[1], v) for v in layers[other][1]) for other in distinct[1:]]
    assert [near["similarity"] for near in answer["contextual"]] == pytest.approx(
        sorted(best, reverse=True)[:5], abs=2e-3
    )
    for near in answer["contextual"]:
        assert near["words"] != query
        vector = layers[tuple(near["words"])][1, near["index"]]
        assert cosine(target[1], vector) == pytest.approx(near["similarity"], abs=2e-3)
    forms = {word: layers[s][0, i] for s in distinct for i, word in enumerate(s)}
    del forms[query[1]]
    static = sorted((cosine(target[0], vector) for vector in forms.values()), reverse=True)[:5]
    assert [near["similarity"] for near in answer["static"]] == pytest.approx(static, abs=1e-4)
    assert all(near["words"] != [query[1]] for near in answer["static"])


def test_what_fits_of_a_corpus_is_indexed_sentence_by_sentence(model, index_of):
    sentences = [[f"{letter}{n}" for n in range(140)] for letter in "wv"] + [["last", "one"]]
    num_bytes = model.output_dim * (2 * (model.num_layers - 1) + 4)  # of a word and its form
    answer = index_of(sentences, max_bytes=200 * num_bytes).nearest(["w0"], 0, layer=1, top=3)
    assert (answer["num_sentences"], answer["num_words"], answer["is_whole"]) == (1, 140, False)
    for num_words, is_whole in ((282, True), (281, False)):
        assert index_of(sentences, max_bytes=num_words * num_bytes).is_whole is is_whole
    with pytest.raises(FormatError, match="more words than the index holds"):
        index_of(sentences, max_bytes=100 * num_bytes)
