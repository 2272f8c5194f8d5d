"""Runs of the original's trainer; `tests/parity/test_imports.py` has their activations."""

import json

import numpy as np
import pytest

from elmokit.errors import FormatError
from elmokit.weights.model_dir import load_model
from elmokit.weights.readers.tensor_bundle import TensorBundle

from ....builders import foreign_models as foreign
from ....builders.conversion import convert
from ....parity.oracles import case, read_datasets


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    inputs = case("variant_maxchars20")
    arrays = read_datasets(inputs.directory / "weights.hdf5")
    return arrays, json.loads(inputs.options_path.read_text())


@pytest.fixture
def run(written, tmp_path):
    return foreign.write_checkpoint(tmp_path / "run", *written, words=12)


def test_the_softmax_has_the_weights_of_its_words(run, tmp_path):
    convert(run, tmp_path / "model")
    model = load_model(tmp_path / "model")
    assert model.word_vocab.words[:4] == ("</S>", "<S>", "<UNK>", "w0")
    assert model.softmax_config.kind == "sampled"
    bundle = TensorBundle(run / "model.ckpt-1250.index")
    for name, ours in (("W", model.softmax.weight), ("b", model.softmax.bias)):
        theirs = bundle.read(bundle.entries[f"lm/softmax/{name}"])
        np.testing.assert_array_equal(ours.detach().numpy(), theirs)


def test_the_last_checkpoint_is_read_unless_another_is_chosen(run, written, tmp_path):
    early = {foreign.variable_name(name): array * 0.5 for name, array in written[0].items()}
    foreign.write_bundle(run / "model.ckpt-99", early)
    (run / "elmo-vocab.txt").unlink()
    settings = {"encoder_only": True}
    first = convert(run, tmp_path / "a", **settings)
    assert "model.ckpt-1250" in first.source, "the run says which is the last"
    (run / "checkpoint").unlink()
    assert "model.ckpt-1250" in convert(run, tmp_path / "b", **settings).source
    chosen = convert(run, tmp_path / "c", weights="model.ckpt-99", **settings)
    assert chosen.model_hash != first.model_hash
    (run / "checkpoint").write_text('model_checkpoint_path: "C:\\\\run\\\\model.ckpt-99"\n')
    assert convert(run, tmp_path / "d", **settings).model_hash == chosen.model_hash


def test_a_missing_vocabulary(run, tmp_path):
    (run / "elmo-vocab.txt").rename(tmp_path / "words")
    with pytest.raises(FormatError, match=r"softmax over 12 words.*--vocab.*--encoder-only"):
        convert(run, tmp_path / "model")
    report = convert(run, tmp_path / "model", encoder_only=True)
    assert (report.vocabulary, report.softmax) == (None, False)
    report = convert(run, tmp_path / "other", vocab=tmp_path / "words")
    assert (report.vocabulary, report.softmax) == (12, True)
