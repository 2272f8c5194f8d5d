"""Sources of vectors: layers trained and random, static words."""

import lzma
import shutil

import numpy as np
import pytest

from elmokit.embed.embedder import Embedder
from elmokit.errors import InputError
from elmokit.probes import inputs

from ...builders.experiment_data import write_data
from ...builders.probe_sources import TableSource, annotated
from ...builders.task_models import toy_model

SENTENCES = [("I", "sat", "by", "the", "bank"), ("배", "를"), ("the", "river", ".")]


@pytest.mark.parametrize("state", ["reset", "warm"])
@pytest.mark.parametrize(
    ("layers", "names"),
    [
        ("all", ("layer 0", "layer 1", "layer 2")),
        ("top", ("layer top",)),
        ("average", ("layer average",)),
        (1, ("layer 1",)),
    ],
)
def test_layers_are_those_of_the_embedder(layers, names, state):
    embedder, done = Embedder(toy_model()), []
    source = inputs.LayerSource(
        embedder, layers=layers, state=state, on_sentence=lambda: done.append(1)
    )
    assert source.names == names
    streamed = list(source.stream(SENTENCES))
    assert len(done) == 3
    expected = embedder.embed([list(words) for words in SENTENCES], layers=layers, state=state)
    for one, vectors in zip(streamed, expected, strict=True):
        num_words = len(vectors[0] if layers == "all" else vectors)
        assert one.shape == (len(names), num_words, 16)
        np.testing.assert_allclose(one, vectors.reshape(one.shape), atol=1e-6)


def test_random_weights_are_those_of_the_seed(tmp_path):
    toy_model().save(tmp_path / "model")

    def top(seed):
        sources = inputs.layer_sources(str(tmp_path / "model"), layers="top", random_seed=seed)
        assert [name for source in sources for name in source.names] == ["layer top", "random top"]
        return [next(source.stream(SENTENCES)) for source in sources]

    (trained, one), (_, same), (_, other) = top(1), top(1), top(2)
    np.testing.assert_array_equal(one, same)
    assert np.abs(one - other).max() > 1e-3
    assert np.abs(one - trained).max() > 1e-3


def test_expressions_have_the_mean_of_their_words_and_other_sentences_are_not_read():
    sentences = [
        annotated("a", "in New York", (1, 3, "New_York", "NOUN", "ny"), (0, 1, "in", "ADV", "i")),
        annotated("b", "never read", (0, 1, "never", "ADV", "n")),
    ]
    source = TableSource({"in": [[5], [6]], "New": [[1], [2]], "York": [[3], [8]]}, ("x", "y"))
    ((word, vectors),) = inputs.occurrence_vectors(source, sentences, {"a.0"})
    assert (word.name, vectors.tolist()) == ("a.0", [[2.0], [5.0]])
    assert source.read == [("in", "New", "York")]


def test_senses_are_text_keys_and_an_inventory_of_one_test_set(tmp_path):
    folder = write_data(tmp_path) / "wsd-en"
    text, keys = folder / "semcor.data.xml", folder / "semcor.gold.key.txt"
    text.with_name(f"{text.name}.xz").write_bytes(lzma.compress(text.read_bytes()))
    text.rename(tmp_path / "plain.xml")
    data = inputs.read_sense_data(folder)
    assert (len(data.train), len(data.test)) == (12, 4)
    assert data.train[0].tokens == data.test[0].tokens == ("a", "play", "in", "Minji")
    assert data.inventory.first_sense("play", "NOUN") == "game"
    (tmp_path / "plain.xml").rename(folder / "other.data.xml")
    shutil.copy(keys, folder / "other.gold.key.txt")
    assert len(inputs.read_sense_data(folder, "other").test) == 12
    for wrong in (None, "x"):
        with pytest.raises(InputError, match=r"other, tiny2020.*--test"):
            inputs.read_sense_data(folder, wrong)
