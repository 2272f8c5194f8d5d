"""Normalizations of the mixture; the mixture itself is in `tests/parity/test_scalar_mix.py`."""

import pytest
import torch

from elmokit.bilm.scalar_mix import ScalarMix


@pytest.fixture
def layers():
    """Three layers of very different scale, (L, B, T, 2D)."""
    values = torch.randn(3, 2, 4, 6, generator=torch.Generator().manual_seed(0))
    return values * torch.tensor([1.0, 5.0, 0.2]).view(3, 1, 1, 1) + 1


MASK = torch.tensor([[True, True, True, True], [True, True, False, False]])


def test_padding_does_not_change_real_positions(layers):
    other = layers.clone()
    other[:, ~MASK] = 1000.0
    mix = ScalarMix(3, layer_norm="batch")
    torch.testing.assert_close(mix(layers, MASK)[MASK], mix(other, MASK)[MASK])


@pytest.mark.parametrize("layer_norm", ["batch", "batch_with_boundaries"])
def test_a_batch_without_words_has_no_nan(layers, layer_norm):
    mix = ScalarMix(3, layer_norm=layer_norm)
    nothing = torch.zeros(layers.shape[1:3], dtype=torch.bool)
    plain = ScalarMix(3)(layers)
    torch.testing.assert_close(mix(layers, nothing), plain, rtol=1e-4, atol=1e-4)


def test_a_mix_needs_a_weight_for_each_layer_and_a_mask_for_the_norm_of_a_batch(layers):
    assert ScalarMix(3, layer_norm=True).layer_norm == "token"
    with pytest.raises(ValueError, match="3 values, got 2"):
        ScalarMix(3, initial_weights=[0.5, 1.0])
    with pytest.raises(ValueError, match="'batch' needs `mask`"):
        ScalarMix(3, layer_norm="batch")(layers)
