"""Models as ONNX: ONNX Runtime computes the layers that PyTorch computes."""

import dataclasses

import numpy as np
import pytest
import torch

from elmokit.weights.model_dir import PretrainedBiLM, load_model
from elmokit.weights.onnx_file import write_onnx

from ...builders.embedding_models import toy_model

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
SENTENCES = {
    "en": [["The", "bank", "raised", "its", "rates", "."], ["a" * 80], [], ["🙂"] * 20],
    "ko": [["배", "를", "타", "고"], ["ㅋ" * 50, "."], ["그", "는"] * 40],
}


def check(model, path, ids):
    with torch.inference_mode():
        expected = model.eval()(torch.as_tensor(ids))
    session = onnxruntime.InferenceSession(str(path))
    layers, mask = session.run(None, {"ids": np.asarray(ids, np.int64)})
    np.testing.assert_array_equal(mask, expected.mask)
    np.testing.assert_allclose(layers, expected.layers, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["en", "ko"])
def test_a_packaged_model_computes_the_same_layers(name, tmp_path):
    model = load_model(name)
    write_onnx(model, tmp_path / "model.onnx")
    made = {one.key: one.value for one in onnx.load(tmp_path / "model.onnx").metadata_props}
    assert (made["model_hash"], made["truncation"]) == (model.model_hash(), "character")
    check(model, tmp_path / "model.onnx", model.char_vocab.encode(SENTENCES[name]))


@pytest.mark.parametrize(
    "changes",
    [
        {"projection_dim": 24, "cell_clip": None, "projection_clip": None},
        {"num_layers": 3, "skip_connections": False},
        {"num_layers": 1},
    ],
    ids=lambda changes: ", ".join(changes),
)
@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_any_shape_of_the_network_computes_the_same(changes, activation, tmp_path):
    config = toy_model().config
    lstm = dataclasses.replace(config.lstm, **changes)
    char_cnn = dataclasses.replace(config.char_cnn, activation=activation)
    model = PretrainedBiLM(dataclasses.replace(config, lstm=lstm, char_cnn=char_cnn))
    with torch.no_grad():  # states that reach the clips
        for layer in (*model.forward_layers, *model.backward_layers):
            layer.recurrent_weight *= 2
    write_onnx(model, tmp_path / "model.onnx")
    check(model, tmp_path / "model.onnx", model.char_vocab.encode(SENTENCES["en"]))


def test_a_model_of_words_reads_their_ids(tmp_path):
    model = toy_model(words=True)
    write_onnx(model, tmp_path / "model.onnx")
    check(model, tmp_path / "model.onnx", np.array([[1, 4, 9, 2], [1, 2, 0, 0]]))
