"""The mixture of layers: equation 1, its normalizations, its penalty."""

import pytest
import torch

from elmokit.bilm.scalar_mix import ScalarMix


@pytest.fixture
def layers():
    """Three layers of very different scale, (L, B, T, 2D)."""
    values = torch.randn(3, 2, 4, 6, generator=torch.Generator().manual_seed(0))
    return values * torch.tensor([1.0, 5.0, 0.2]).view(3, 1, 1, 1) + 1


MASK = torch.tensor([[True, True, True, True], [True, True, False, False]])


def set_parameters(mix, weights, gamma):
    with torch.no_grad():
        mix.mix_weights.copy_(torch.tensor(weights))
        mix.gamma.fill_(gamma)


class TestMixture:
    def test_equation_1(self, layers):
        mix = ScalarMix(3)
        set_parameters(mix, [0.5, -1.0, 2.0], 1.5)
        s = torch.tensor([0.5, -1.0, 2.0]).exp()
        s = s / s.sum()
        expected = 1.5 * (s[0] * layers[0] + s[1] * layers[1] + s[2] * layers[2])
        torch.testing.assert_close(mix(layers), expected)


class TestNormalization:
    def test_padding_does_not_change_real_positions(self, layers):
        other = layers.clone()
        other[:, ~MASK] = 1000.0
        mix = ScalarMix(3, layer_norm="batch")
        torch.testing.assert_close(mix(layers, MASK)[MASK], mix(other, MASK)[MASK])

    @pytest.mark.parametrize("layer_norm", ["batch", "batch_with_boundaries"])
    def test_a_batch_without_words_has_no_nan(self, layers, layer_norm):
        mix = ScalarMix(3, layer_norm=layer_norm)
        nothing = torch.zeros(layers.shape[1:3], dtype=torch.bool)
        plain = ScalarMix(3)(layers)
        torch.testing.assert_close(mix(layers, nothing), plain, rtol=1e-4, atol=1e-4)
