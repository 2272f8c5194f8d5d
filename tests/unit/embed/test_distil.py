import json

import numpy as np
import pytest

from elmokit.embed.distil import distil
from elmokit.embed.embedder import Embedder
from elmokit.errors import FormatError, InputError
from elmokit.vectors.safetensors_file import read_table
from elmokit.vectors.vector_files import read_vectors

from ...builders.embedding_models import random_sentences, toy_model
from ...builders.training_models import write_text


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("distil")
    toy_model(vocab=True).save(folder / "model")
    write_text(folder / "corpus.txt", random_sentences(60, seed=4))
    return folder


@pytest.fixture
def make(folder, tmp_path):
    def make(name, **options):
        options = {"min_count": 3} | options
        distil(str(folder / "model"), [folder / "corpus.txt"], tmp_path / name, **options)
        return tmp_path / name

    return make


@pytest.mark.parametrize("layers", [0, 1, "average"])
def test_a_row_is_the_mean_over_all_occurrences(folder, make, layers):
    table = read_table(make("t.safetensors", layers=layers, remove=0))
    embedder = Embedder.load(folder / "model")
    lines = (folder / "corpus.txt").read_text(encoding="utf-8").splitlines()
    sentences = [line.split() for line in lines]
    of_word = {}
    for words, vectors in zip(sentences, embedder.embed(sentences, layers=layers), strict=True):
        for word, vector in zip(words, vectors, strict=True):
            of_word.setdefault(word, []).append(vector)
    frequent = {word for word, vectors in of_word.items() if len(vectors) >= 3}
    assert set(table.words) == frequent
    assert table.counts.tolist() == [len(of_word[word]) for word in table.words]
    for word, row in zip(table.words, table.vectors, strict=True):
        mean = np.mean(of_word[word], axis=0)
        centered = mean / np.linalg.norm(mean) - table.mean
        cosine = row @ centered / np.linalg.norm(row) / np.linalg.norm(centered)
        assert cosine > 1 - 1e-5  # with no component removed only the length differs


@pytest.mark.parametrize("name", ["t.bin", "t.vec", "t.txt", "t.safetensors"])
def test_every_form_holds_the_same_vectors(make, name):
    expected = read_table(make("expected.safetensors"))
    found = read_vectors(make(name))
    assert found.words == list(expected.words)
    assert np.array_equal(found.values[2:], expected.vectors)
    path = make(name, overwrite=True)
    assert read_vectors(path, only=["the"]).words == ["the"]
    if name != "t.safetensors":
        made_by = json.loads(path.with_name(f"{name}.json").read_text())
        assert made_by == dict(expected.made_by)


def test_sentences_are_compared_by_the_statistics_of_a_table(folder, make):
    path = make("t.safetensors", layers=0)
    embedder, table = Embedder.load(folder / "model"), read_vectors(path)
    sentences = [[w for w in words if w in table] for words in random_sentences(9)]
    found = embedder.embed_sentences(sentences, statistics=path)
    for words, vector in zip(sentences, found, strict=True):
        rows = table.values[[table.id_of(word) for word in words]]
        assert np.abs(rows.mean(axis=0) - vector).max() < 1e-4 if words else not vector.any()
    with pytest.raises(InputError, match="another model"):
        Embedder(toy_model(vocab=True, cell_dim=20)).embed_sentences(sentences, statistics=path)
    with pytest.raises(InputError, match="layers=0"):
        embedder.embed_sentences(sentences, statistics=path, layers="top")
    with pytest.raises(InputError, match="sif"):
        embedder.embed_sentences(sentences, statistics=path, pooling="mean")


@pytest.mark.parametrize(
    ("name", "options", "error", "named"),
    [
        ("t.csv", {}, InputError, "csv"),
        ("t.vec", {"layers": 9}, InputError, "9"),
        ("t.vec", {"remove": 16}, InputError, "16"),
        ("t.vec", {"min_count": 10**6}, FormatError, "min_count"),
    ],
)
def test_bad_input_is_refused(make, name, options, error, named):
    with pytest.raises(error, match=named):
        make(name, **options)
