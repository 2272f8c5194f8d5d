"""What every format that models are stored in has to do, whatever its files are called."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from elmokit.bilm.bilm import BiLMConfig
from elmokit.bilm.char_cnn import CharCNNConfig
from elmokit.bilm.lstmp import LSTMConfig
from elmokit.bilm.softmax import SoftmaxConfig
from elmokit.errors import FormatError
from elmokit.text.char_vocab import CharVocabConfig
from elmokit.text.word_vocab import WordVocab
from elmokit.weights import bilm_tf, stored_bilm
from elmokit.weights.bilm_tf import write_bilm_tf
from elmokit.weights.model_dir import PretrainedBiLM, load_model, read_bilm_tf

SENTENCES = [["I", "sat", "by", "the", "눈", "."], ["bank"], []]
VOCAB = WordVocab(["<S>", "</S>", "<UNK>", "the", "bank", "눈"])
RAW = CharVocabConfig(normalization="none", truncation="byte")


@dataclass(frozen=True)
class Format:
    """How a format writes and reads, and how to damage a tensor in its weight file."""

    weights_name: str
    write: Callable[[PretrainedBiLM, Path], None]
    read: Callable[[Path], PretrainedBiLM]
    replace: Callable[[Path, str, tuple[int, ...] | None], None]
    tensor: str
    shape: tuple[int, ...]
    breaking_point: tuple[object, str]
    """(module, name) of what is called while files are being written."""


def _write_original(model: PretrainedBiLM, directory: Path) -> None:
    write_bilm_tf(model, directory / "options.json", directory / "weights.hdf5")
    if model.word_vocab is not None:
        model.word_vocab.write(directory / "vocab.txt")


def _read_original(directory: Path) -> PretrainedBiLM:
    vocab = directory / "vocab.txt"
    return read_bilm_tf(
        directory / "options.json",
        directory / "weights.hdf5",
        vocab=vocab if vocab.exists() else None,
    )


def _replace_in_hdf5(path: Path, name: str, shape: tuple[int, ...] | None) -> None:
    with h5py.File(path, "a") as file:
        del file[name]
        if shape is not None:
            file[name] = np.zeros(shape, np.float32)


def _replace_in_safetensors(path: Path, name: str, shape: tuple[int, ...] | None) -> None:
    tensors = load_file(path)
    del tensors[name]
    if shape is not None:
        tensors[name] = torch.zeros(shape)
    save_file(tensors, path)


FORMATS = {
    "model directory": Format(
        "model.safetensors",
        lambda model, directory: model.save(directory),
        load_model,
        _replace_in_safetensors,
        "forward_layers.0.recurrent_weight",
        (32, 4),
        (stored_bilm, "model_card"),
    ),
    "options.json + HDF5": Format(
        "weights.hdf5",
        _write_original,
        _read_original,
        _replace_in_hdf5,
        "RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell/W_0",
        (8, 32),
        (bilm_tf, "options_of"),
    ),
}


@pytest.fixture(params=FORMATS)
def storage(request):
    return FORMATS[request.param]


def build(*, words=False, **settings):
    """A small model with fresh weights that differ from those of the constructor."""
    config = BiLMConfig(
        char_vocab=RAW,
        char_cnn=None if words else CharCNNConfig(embedding_dim=3, filters=((1, 4), (2, 5))),
        num_words=len(VOCAB) if words else None,
        lstm=LSTMConfig(cell_dim=8, projection_dim=4),
    )
    model = PretrainedBiLM(config, **settings).eval()
    model.reset_parameters(torch.Generator().manual_seed(5))
    return model


MODELS = {
    "encoder only": lambda: build(),
    "with vocabulary": lambda: build(word_vocab=VOCAB),
    "sampled softmax": lambda: build(
        word_vocab=VOCAB, softmax_config=SoftmaxConfig(kind="sampled", num_samples=3)
    ),
    "full softmax": lambda: build(word_vocab=VOCAB, softmax_config=SoftmaxConfig(kind="full")),
    "word input": lambda: build(words=True, word_vocab=VOCAB),
}


@pytest.mark.parametrize("kind", MODELS)
def test_a_model_comes_back_as_it_was(storage, kind, tmp_path):
    model = MODELS[kind]()
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
            storage.write(build(word_vocab=VOCAB), tmp_path / "m")
    assert storage.read(tmp_path / "m").model_hash() == old.model_hash()
    assert sorted(path.name for path in (tmp_path / "m").iterdir()) == names
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_truncated_file_is_named(storage, share, tmp_path):
    storage.write(build(), tmp_path / "m")
    path = tmp_path / "m" / storage.weights_name
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    with pytest.raises(FormatError, match=re.escape(str(path))):
        storage.read(tmp_path / "m")


@pytest.mark.parametrize("shape", [None, (7, 9)])
def test_a_missing_tensor_or_a_wrong_shape_is_named(storage, shape, tmp_path):
    storage.write(build(), tmp_path / "m")
    path = tmp_path / "m" / storage.weights_name
    storage.replace(path, storage.tensor, shape)
    with pytest.raises(FormatError) as raised:
        storage.read(tmp_path / "m")
    for part in (str(path), storage.tensor, str(storage.shape), str(shape or "")):
        assert part in str(raised.value)


def test_weights_of_another_model_are_refused(storage, tmp_path):
    """A second model with one more layer: its surplus tensors have no place in the first."""
    storage.write(build(), tmp_path / "a")
    config = replace(build().config, lstm=LSTMConfig(cell_dim=8, projection_dim=4, num_layers=3))
    storage.write(PretrainedBiLM(config), tmp_path / "b")
    (tmp_path / "b" / storage.weights_name).replace(tmp_path / "a" / storage.weights_name)
    with pytest.raises(
        FormatError, match=rf"/a/{storage.weights_name}: .*\(\d+,\).*(options|config)"
    ):
        storage.read(tmp_path / "a")


def test_weights_are_stored_as_fp32_without_pickle(storage, tmp_path):
    model = build().to(torch.bfloat16)
    storage.write(model, tmp_path / "m")
    path = tmp_path / "m" / storage.weights_name
    if path.suffix == ".safetensors":
        with safe_open(path, framework="np") as file:
            dtypes = {file.get_tensor(name).dtype for name in file.keys()}  # noqa: SIM118
    else:
        dtypes = set()
        with h5py.File(path) as file:
            file.visititems(
                lambda _, item: dtypes.add(item.dtype) if isinstance(item, h5py.Dataset) else None
            )
    assert dtypes == {np.dtype(np.float32)}
    json_files = sorted(p.suffix for p in (tmp_path / "m").iterdir())
    assert set(json_files) <= {".json", ".hdf5", ".safetensors", ".md"}
    assert json.loads(next((tmp_path / "m").glob("*.json")).read_text())
