"""Scalar mixes against AllenNLP's `Elmo` and bilm-tf's `weight_layers`."""

import json

import numpy as np
import pytest
import torch

from elmokit.inference.elmo import ELMo
from elmokit.weights.model_dir import read_bilm_tf

from .oracles import FIXTURES, case

MIXES = range(3)


@pytest.fixture(scope="module")
def oracle():
    with np.load(FIXTURES / "scalar_mix" / "expected.npz") as arrays:
        return dict(arrays)


@pytest.fixture(scope="module")
def settings():
    return json.loads((FIXTURES / "scalar_mix" / "mix.json").read_text())


@pytest.fixture(scope="module")
def build(settings):
    """A function that builds the ELMo layer with the case's parameters and runs the batch."""
    inputs = case("edge_stateless")
    model = read_bilm_tf(inputs.options_path, inputs.weights_path(None))
    sentences = [inputs.sentences[index] for index in settings["sentence_index"]]
    ids = model.encode(sentences, boundaries=False)

    def run(**arguments):
        elmo = ELMo(model, num_mixes=len(MIXES), dropout=0.0, l2=1e-3, **arguments)
        with torch.no_grad():
            for mix, weights, gamma in zip(
                elmo.scalar_mixes, settings["scalar_parameters"], settings["gamma"], strict=True
            ):
                if mix.mix_weights.numel() == len(weights):
                    mix.mix_weights.copy_(torch.tensor(weights))
                mix.gamma.fill_(gamma)
            return elmo, elmo(ids)

    return run


def assert_close(ours, reference, mask, *, atol):
    """Compare at real positions only: padding holds nothing that is promised."""
    assert ours.shape == reference.shape
    np.testing.assert_allclose(ours.numpy()[mask], reference[mask], atol=atol, rtol=0)


@pytest.mark.parametrize("keep_boundaries", [False, True])
@pytest.mark.parametrize("layer_norm", ["none", "batch_with_boundaries"])
def test_mixes_equal_allennlp(oracle, build, layer_norm, keep_boundaries):
    _, out = build(layer_norm=layer_norm, keep_boundaries=keep_boundaries)
    name = f"allennlp_ln{int(layer_norm != 'none')}_bos{int(keep_boundaries)}"
    np.testing.assert_array_equal(out.mask.numpy(), oracle[f"{name}_mask"])
    for k in MIXES:
        atol = 2e-5 if layer_norm == "none" else 1e-4
        assert_close(out.mixes[k], oracle[f"{name}_mix{k}"], oracle[f"{name}_mask"], atol=atol)


@pytest.mark.parametrize("layer_norm", ["none", "batch"])
def test_mixes_equal_bilm_tf(oracle, build, layer_norm):
    _, out = build(layer_norm=layer_norm)
    name = f"bilmtf_ln{int(layer_norm != 'none')}"
    mask = oracle["bilmtf_mask"]
    np.testing.assert_array_equal(out.mask.numpy(), mask)
    for k in MIXES:
        atol = 2e-5 if layer_norm == "none" else 1e-4
        assert_close(out.mixes[k], oracle[f"{name}_mix{k}"], mask, atol=atol)


def test_penalty_equals_bilm_tf(oracle, build):
    elmo, _ = build()
    expected = sum(oracle[f"bilmtf_ln0_mix{k}_l2reg"].astype(np.float64).sum() for k in MIXES)
    assert elmo.penalty().item() == pytest.approx(expected, rel=1e-5)


def test_top_layer_alone_equals_bilm_tf(oracle, build):
    _, out = build(layers="top")
    assert_close(out.mixes[0], oracle["bilmtf_top_only"], oracle["bilmtf_mask"], atol=2e-4)
