"""Runs of the original's trainer; `tests/parity/test_imports.py` has their activations."""

import json

import numpy as np
import pytest

from elmokit.errors import FormatError
from elmokit.evaluation.perplexity import perplexity
from elmokit.weights.model_dir import load_model

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


def test_the_softmax_gives_the_perplexity_of_its_weights(run, tmp_path):
    convert(run, tmp_path / "model")
    model = load_model(tmp_path / "model")
    assert model.word_vocab.words[:4] == ("</S>", "<S>", "<UNK>", "w0")
    assert model.softmax_config.kind == "sampled"
    sentences = [["w0", "w3", "unheard"], ["w8"]]
    nats = []
    for words in sentences:
        layers = model(model.encode([words])).layers[-1, 0].detach().numpy()
        ids = [1, *(2 if word == "unheard" else int(word[1:]) + 3 for word in words), 0]
        weights, bias = model.softmax.weight.detach().numpy(), model.softmax.bias.detach().numpy()
        ahead, back = np.split(layers, 2, axis=1)
        for x, targets in ((ahead[:-1], ids[1:]), (back[1:], ids[:-1])):
            scores = (x @ weights.T + bias).astype(np.float64)
            logs = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
            nats += [-logs[row, target] for row, target in enumerate(targets)]
    found = perplexity(model, sentences, state="reset", precision="fp32").mean
    assert found == pytest.approx(np.exp(np.mean(nats)), rel=1e-5)


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
