"""The token layer; `tests/parity/test_numpy_bilm.py` has its equations, over every variant."""

import pytest
import torch

from elmokit.bilm.char_cnn import CharCNNConfig, CharTokenEncoder


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_fresh_weights_are_those_of_the_original(activation):
    config = CharCNNConfig(activation=activation)
    encoder = CharTokenEncoder(config, output_dim=64, max_characters=50)
    encoder.reset_parameters(torch.Generator().manual_seed(0))
    assert encoder(torch.zeros(0, 50, dtype=torch.int16)).shape == (0, 64)
    assert not encoder.char_embedding.weight[0].any()
    assert encoder.char_embedding.weight.abs().max() <= 1
    assert encoder.char_embedding.weight[1:].std().item() == pytest.approx(3**-0.5, rel=0.05)
    widest = encoder.convolutions[-1].weight
    if activation == "relu":
        assert widest.abs().max() <= 0.05
    else:
        assert widest.std().item() == pytest.approx((7 * 16) ** -0.5, rel=0.02)
    assert encoder.projection.weight.std().item() == pytest.approx(2048**-0.5, rel=0.02)
    assert not any(conv.bias.any() for conv in (*encoder.convolutions, encoder.projection))
    for highway in encoder.highways:
        for linear, bias in ((highway.carry, -2), (highway.transform, 0)):
            assert linear.weight.std().item() == pytest.approx(2048**-0.5, rel=0.02)
            assert (linear.bias == bias).all()
