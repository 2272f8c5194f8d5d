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


def check_mixes(out, oracle, name, mask, *, atol=2e-5):
    """Compare at real positions only: padding holds nothing that is promised."""
    np.testing.assert_array_equal(out.mask.numpy(), mask)
    for ours, reference in zip(out.mixes, (oracle[f"{name}_mix{k}"] for k in MIXES), strict=True):
        assert ours.shape == reference.shape
        np.testing.assert_allclose(ours.numpy()[mask], reference[mask], atol=atol, rtol=0)


@pytest.mark.parametrize("keep_boundaries", [False, True])
@pytest.mark.parametrize(("layer_norm", "atol"), [("none", 2e-5), ("batch_with_boundaries", 1e-4)])
def test_mixes_equal_allennlp(oracle, build, layer_norm, atol, keep_boundaries):
    _, out = build(layer_norm=layer_norm, keep_boundaries=keep_boundaries)
    name = f"allennlp_ln{int(layer_norm != 'none')}_bos{int(keep_boundaries)}"
    check_mixes(out, oracle, name, oracle[f"{name}_mask"], atol=atol)


@pytest.mark.parametrize(("layer_norm", "atol"), [("none", 2e-5), ("batch", 1e-4)])
def test_mixes_equal_bilm_tf(oracle, build, layer_norm, atol):
    _, out = build(layer_norm=layer_norm)
    name = f"bilmtf_ln{int(layer_norm != 'none')}"
    check_mixes(out, oracle, name, oracle["bilmtf_mask"], atol=atol)


def test_penalty_equals_bilm_tf(oracle, build):
    elmo, _ = build()
    expected = sum(oracle[f"bilmtf_ln0_mix{k}_l2reg"].astype(np.float64).sum() for k in MIXES)
    assert elmo.penalty().item() == pytest.approx(expected, rel=1e-5)


def test_top_layer_alone_equals_bilm_tf(oracle, build):
    _, out = build(layers="top")
    mask = oracle["bilmtf_mask"]
    reference = oracle["bilmtf_top_only"]
    np.testing.assert_allclose(out.mixes[0].numpy()[mask], reference[mask], atol=2e-4, rtol=0)
