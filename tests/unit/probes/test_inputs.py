"""Sources of vectors: layers trained and random, static words."""

import lzma

import numpy as np
import pytest

from elmokit.embed.embedder import Embedder
from elmokit.errors import InputError
from elmokit.probes.inputs import (
    LayerSource,
    check_names,
    layer_sources,
    occurrence_vectors,
    read_sense_data,
)

from ...builders.probe_sources import TableSource, annotated
from ...builders.task_models import toy_model

SENTENCES = [("I", "sat", "by", "the", "bank"), ("배", "를"), ("the", "river", ".")]


@pytest.fixture(scope="module")
def embedder():
    return Embedder(toy_model())


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
def test_layers_are_those_of_the_embedder_kept_in_half_precision(
    embedder, tmp_path, layers, names, state
):
    done = []
    source = LayerSource(
        embedder, layers=layers, state=state, cache_dir=tmp_path, on_sentence=lambda: done.append(1)
    )
    assert source.names == names
    streamed, kept = list(source.stream(SENTENCES)), source.keep(SENTENCES)
    source.keep(SENTENCES)  # from disk, which computes nothing
    assert len(done) == 6
    expected = embedder.embed([list(words) for words in SENTENCES], layers=layers, state=state)
    for one, other, vectors in zip(streamed, kept, expected, strict=True):
        num_words = len(vectors[0] if layers == "all" else vectors)
        assert one.shape == other.shape == (len(names), num_words, 16)
        np.testing.assert_allclose(one, vectors.reshape(one.shape), atol=1e-6)
        np.testing.assert_allclose(other, one, atol=2e-3)


def test_random_weights_are_those_of_the_seed(tmp_path):
    toy_model().save(tmp_path / "model")

    def top(seed):
        sources = layer_sources(str(tmp_path / "model"), layers="top", random_seed=seed)
        assert check_names(sources) == ["layer top", "random top"]
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
    ((word, vectors),) = occurrence_vectors(source, sentences, {"a.0"})
    assert (word.name, vectors.tolist()) == ("a.0", [[2.0], [5.0]])
    assert source.read == [("in", "New", "York")]


TEXT = (
    "<corpus><text id='d'><sentence id='d.s0'><wf lemma='the' pos='DET'>The</wf>"
    "<instance id='d.s0.t0' lemma='bank' pos='NOUN'>bank</instance></sentence></text></corpus>"
)
KEYS = "d.s0.t0 bank%1\n"
SENSES = "lemma\tpos\trank\tsense_key\tsynset\tgloss\nbank\tn\t1\tbank%1\ts\tg\n"


@pytest.fixture
def senses_dir(tmp_path):
    for name in ("semcor", "semeval2007"):
        (tmp_path / f"{name}.gold.key.txt").write_text(KEYS, encoding="utf-8")
        with lzma.open(tmp_path / f"{name}.data.xml.xz", "wt", encoding="utf-8") as file:
            file.write(TEXT)
    (tmp_path / "oewn2021-senses.tsv").write_text(SENSES, encoding="utf-8")
    return tmp_path


def test_senses_are_text_keys_and_an_inventory_of_one_test_set(senses_dir):
    data = read_sense_data(senses_dir)
    assert data.train[0].tokens == data.test[0].tokens == ("The", "bank")
    assert data.inventory.first_sense("bank", "NOUN") == "bank%1"
    (senses_dir / "senseval2.data.xml").write_text(TEXT.replace("The", "A"), encoding="utf-8")
    (senses_dir / "senseval2.gold.key.txt").write_text(KEYS, encoding="utf-8")
    assert read_sense_data(senses_dir, test="senseval2").test[0].tokens == ("A", "bank")
    for wrong in (None, "x"):
        with pytest.raises(InputError, match=r"semeval2007, senseval2 .*--test"):
            read_sense_data(senses_dir, test=wrong)
