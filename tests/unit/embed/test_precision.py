import numpy as np
import pytest
import torch

from elmokit.embed.precision import build_network, check_precision

from .models import random_sentences, run_engine, toy_model


def test_fp32_shares_the_modules_and_bf16_leaves_the_model_alone():
    model = toy_model()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    fp32 = build_network(model, precision="fp32", device=torch.device("cpu"))
    bf16 = build_network(model, precision="bf16", device=torch.device("cpu"))
    assert fp32.token_encoder is model.token_encoder
    assert bf16.forward_layers[0].recurrent_weight.dtype == torch.bfloat16
    assert bf16.forward_layers[0].bias.dtype == torch.float32
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, before[name])


def test_bf16_stays_close_to_fp32():
    model = toy_model(cell_dim=64, projection_dim=32)
    sentences = random_sentences(40)
    exact = run_engine(model, sentences)
    rough = run_engine(model, sentences, precision="bf16")
    assert rough.state.cell.dtype == torch.float32
    cosines = []
    for a, b in zip(exact.vectors, rough.vectors, strict=True):
        product = (a * b).sum(-1)
        cosines.append(product / np.linalg.norm(a, axis=-1) / np.linalg.norm(b, axis=-1))
    values = np.concatenate([c.reshape(-1) for c in cosines])
    assert np.median(values) >= 0.9999
    assert values.min() >= 0.995


@pytest.mark.parametrize("precision", ["int8", "fp16", ""])
def test_other_precisions_are_refused_with_the_choices(precision):
    with pytest.raises(ValueError, match="must be 'fp32' or 'bf16', got"):
        check_precision(precision)
