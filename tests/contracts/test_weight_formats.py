"""What every format that models are stored in has to do, whatever its files are called."""

import json
from dataclasses import replace

import h5py
import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

from elmokit.bilm.softmax import SoftmaxConfig
from elmokit.errors import FormatError
from elmokit.text.char_vocab import CharVocabConfig
from elmokit.weights import bilm_tf, stored_bilm
from elmokit.weights.bilm_tf import write_bilm_tf
from elmokit.weights.model_dir import PretrainedBiLM, load_model, read_bilm_tf

from ..builders.embedding_models import RAW, toy_model
from ..parity.oracles import read_datasets

SENTENCES = [["I", "sat", "by", "the", "눈", "."], ["bank"], []]


class ModelDirectory:
    weights_name = "model.safetensors"
    tensor, shape = "forward_layers.0.recurrent_weight", (32, 4)
    breaking_point = (stored_bilm, "model_card")
    """What is called while files are being written."""
    read, read_tensors = staticmethod(load_model), staticmethod(load_file)

    @staticmethod
    def write(model, directory):
        model.save(directory)

    @staticmethod
    def write_tensors(path, tensors):
        save_file(tensors, path)


class OriginalFiles:
    weights_name = "weights.hdf5"
    tensor, shape = "RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell/W_0", (8, 32)
    breaking_point = (bilm_tf, "options_of")
    read_tensors = staticmethod(read_datasets)

    @staticmethod
    def write(model, directory):
        write_bilm_tf(model, directory / "options.json", directory / "weights.hdf5")
        if model.word_vocab is not None:
            model.word_vocab.write(directory / "vocab.txt")

    @staticmethod
    def read(directory):
        vocab = directory / "vocab.txt"
        files = directory / "options.json", directory / "weights.hdf5"
        return read_bilm_tf(*files, vocab=vocab if vocab.exists() else None)

    @staticmethod
    def write_tensors(path, tensors):
        with h5py.File(path, "w") as file:
            for name, values in tensors.items():
                file[name] = values


@pytest.fixture(params=[ModelDirectory, OriginalFiles])
def storage(request):
    return request.param


def build(*, words=False, **settings):
    """A small model whose weights differ from those of the constructor."""
    model = toy_model(cell_dim=8, projection_dim=4, raw=True, words=words, **settings)
    if not words:
        return model
    # the original's files do not say how characters would be read
    config = replace(model.config, char_vocab=CharVocabConfig(**RAW))
    again = PretrainedBiLM(config, word_vocab=model.word_vocab).eval()
    again.load_state_dict(model.state_dict())
    return again


MODELS = {
    "encoder only": {},
    "with vocabulary": {"vocab": True},
    "sampled softmax": {
        "vocab": True,
        "softmax_config": SoftmaxConfig(kind="sampled", num_samples=3),
    },
    "full softmax": {"vocab": True, "softmax_config": SoftmaxConfig(kind="full")},
    "word input": {"words": True},
}


@pytest.mark.parametrize("kind", MODELS)
def test_a_model_comes_back_as_it_was(storage, kind, tmp_path):
    model = build(**MODELS[kind])
    storage.write(model, tmp_path / "m")
    again = storage.read(tmp_path / "m")

    assert not again.training
    assert again.config == model.config
    assert again.word_vocab == model.word_vocab
    assert again.tokenizer == model.tokenizer
    assert (again.softmax_config is None) == (model.softmax_config is None)
    assert type(again.softmax) is type(model.softmax)
    assert again.model_hash() == model.model_hash()
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, again.state_dict()[name]), name
    with torch.no_grad():
        ids = model.encode(SENTENCES)
        assert torch.equal(ids, again.encode(SENTENCES))
        assert torch.equal(model(ids).layers, again(ids).layers)


def test_an_interrupted_write_leaves_the_older_model_whole(storage, tmp_path, monkeypatch):
    old = build()
    storage.write(old, tmp_path / "m")
    names = sorted(path.name for path in (tmp_path / "m").iterdir())

    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(*storage.breaking_point, fail)
        with pytest.raises(OSError, match="No space left"):
            storage.write(build(vocab=True), tmp_path / "m")
    assert storage.read(tmp_path / "m").model_hash() == old.model_hash()
    assert sorted(path.name for path in (tmp_path / "m").iterdir()) == names
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


@pytest.fixture
def weights(storage, tmp_path):
    """The weight file of a stored model."""
    storage.write(build(), tmp_path / "m")
    return tmp_path / "m" / storage.weights_name


@pytest.mark.parametrize("shape", [None, (7, 9)])
def test_a_missing_tensor_or_a_wrong_shape_is_named(storage, shape, weights):
    tensors = storage.read_tensors(weights)
    del tensors[storage.tensor]
    if shape is not None:
        tensors[storage.tensor] = np.zeros(shape, np.float32)
    storage.write_tensors(weights, tensors)
    with pytest.raises(FormatError) as raised:
        storage.read(weights.parent)
    for part in (str(weights), storage.tensor, str(storage.shape), str(shape or "")):
        assert part in str(raised.value)


def test_weights_of_another_model_are_refused(storage, weights, tmp_path):
    """A second model with one more layer: its surplus tensors have no place in the first."""
    storage.write(build(num_layers=3), tmp_path / "other")
    (tmp_path / "other" / storage.weights_name).replace(weights)
    message = rf"/m/{storage.weights_name}: .*\(\d+,\).*(options|config)"
    with pytest.raises(FormatError, match=message):
        storage.read(weights.parent)


def test_weights_are_stored_as_fp32_without_pickle(storage, tmp_path):
    storage.write(build().to(torch.bfloat16), tmp_path / "m")
    tensors = storage.read_tensors(tmp_path / "m" / storage.weights_name)
    assert {tensor.dtype for tensor in tensors.values()} == {np.dtype(np.float32)}
    suffixes = {path.suffix for path in (tmp_path / "m").iterdir()}
    assert suffixes <= {".json", ".hdf5", ".safetensors", ".md"}
    assert json.loads(next((tmp_path / "m").glob("*.json")).read_text())
