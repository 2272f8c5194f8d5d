"""Names of models, and the files that are made of them."""

import json

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load

import elmokit
from elmokit.errors import FormatError
from elmokit.text.tokenizers.registry import TokenizerConfig
from elmokit.web.page.models import STATIC, index_corpus, language_of, pack_name, prepared_layers

from ....builders.training_models import random_sentences, toy_model, write_text


def test_prepared_layers_are_those_of_the_embedder(tmp_path):
    model = toy_model().stored()
    path = tmp_path / "prepared.safetensors"
    path.write_bytes(prepared_layers(model))
    tensors = load(path.read_bytes())
    entries = json.loads((STATIC / "packs/senses.en.json").read_bytes())["entries"]
    sentences = [sentence["words"] for entry in entries for sentence in entry["sentences"]]
    words = [word for sentence in sentences for word in sentence]
    expected = np.concatenate(elmokit.Embedder(model).embed(sentences), axis=1)  # (L, N, 2D)
    num_layers, count, width = expected.shape
    static, context = (tensors[n] * tensors[f"{n}.scale"][:, None] for n in ("static", "context"))
    context = context.reshape(count, num_layers - 1, width).transpose(1, 0, 2)
    assert cosines(context, expected[1:]).min() > 0.9995
    order = list(dict.fromkeys(words))
    static = static[[order.index(word) for word in words]]
    assert cosines(static, expected[0, :, : width // 2]).min() > 0.9995
    with safe_open(path, framework="numpy") as file:
        assert file.metadata() == {"model": model.model_hash()}


def cosines(a, b):
    norms = np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1)
    return (a * b).sum(axis=-1) / norms


@pytest.mark.parametrize(
    ("stated", "tokenizer", "language", "pack"),
    [
        (None, "whitespace", None, "en"), ("ko", "whitespace", "ko", "ko"),
        ("fi", "korean", "fi", "en"),  # what the model states counts
        (None, "korean", "ko", "ko"), ("ko-KR", "korean", "ko", "ko"),
    ],
)  # fmt: skip
def test_a_model_gets_the_sentences_of_its_language(stated, tokenizer, language, pack):
    model = toy_model(tokenizer=TokenizerConfig(name=tokenizer)).stored()
    model.training_metadata["language"] = stated
    assert (language_of(model), pack_name(model)) == (language, f"packs/senses.{pack}.json")


SENTENCES = [sentence for sentence in random_sentences(60) if len(sentence) > 2]


@pytest.fixture(scope="module")
def model():
    return toy_model()


@pytest.fixture
def index_of(model, tmp_path):
    def index_of(sentences, **options):
        path = write_text(tmp_path / "corpus.txt", sentences)
        return index_corpus(elmokit.Embedder(model), [path], **options)

    return index_of


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
    best = [cosines(target[1], layers[other][1]).max() for other in distinct[1:]]
    assert [near["similarity"] for near in answer["contextual"]] == pytest.approx(
        sorted(best, reverse=True)[:5], abs=2e-3
    )
    for near in answer["contextual"]:
        assert near["words"] != query
        vector = layers[tuple(near["words"])][1, near["index"]]
        assert cosines(target[1], vector) == pytest.approx(near["similarity"], abs=2e-3)
    forms = {word: layers[s][0, i] for s in distinct for i, word in enumerate(s)}
    del forms[query[1]]
    static = sorted((cosines(target[0], vector) for vector in forms.values()), reverse=True)[:5]
    assert [near["similarity"] for near in answer["static"]] == pytest.approx(static, abs=1e-4)
    assert all(near["words"] != [query[1]] for near in answer["static"])


def test_what_fits_of_a_corpus_is_indexed(model, index_of):
    sentences = [[f"{letter}{n}" for n in range(140)] for letter in "wv"] + [["last", "one"]]
    num_bytes = model.output_dim * (2 * (model.num_layers - 1) + 4)  # of a word and its form
    for num_words, indexed in ((282, 282), (281, 280), (200, 140)):
        index = index_of(sentences, max_bytes=num_words * num_bytes)
        assert (index.starts[-1], index.is_whole) == (indexed, indexed == 282)
    with pytest.raises(FormatError, match="more words than the index holds"):
        index_of(sentences, max_bytes=100 * num_bytes)
