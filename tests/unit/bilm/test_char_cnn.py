import pytest
import torch
from torch.nn import functional

from elmokit.bilm.char_cnn import CharCNNConfig, CharTokenEncoder
from elmokit.text.char_vocab import CharVocab, CharVocabConfig

WORDS = ["I", "sat", "", "bank", "눈", "Donaudampfschifffahrt", "x" * 60, "<S>", "🙂🙂"]
FILTERS = ((1, 4), (2, 3), (5, 6))


def build(*, output_dim=5, max_characters=50, **settings):
    settings = {"embedding_dim": 3, "filters": FILTERS, "num_highway": 1} | settings
    encoder = CharTokenEncoder(
        CharCNNConfig(**settings), output_dim=output_dim, max_characters=max_characters
    )
    encoder.reset_parameters(torch.Generator().manual_seed(0))
    with torch.no_grad():
        for convolution in encoder.convolutions:
            convolution.weight.mul_(8)  # fresh ones are so small that windows hardly differ
            convolution.bias.uniform_(-0.3, 0.3, generator=torch.Generator().manual_seed(1))
    return encoder.eval()


def ids_of(words, *, max_characters=50):
    vocab = CharVocab(CharVocabConfig(max_characters=max_characters))
    return torch.from_numpy(vocab.encode_words(words).astype("int64"))


def plain(encoder, ids):
    """Convolve whole rows, padding and all, with torch's own convolution."""
    x = encoder.char_embedding(ids).transpose(1, 2)
    activation = getattr(torch, encoder.config.activation)
    pooled = [
        activation(functional.conv1d(x, conv.weight, conv.bias).amax(dim=2))
        for conv in encoder.convolutions
    ]
    y = torch.cat(pooled, dim=1)
    for highway in encoder.highways:
        y = highway(y)
    return y if encoder.projection is None else encoder.projection(y)


@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("num_highway", [0, 1, 3])
@pytest.mark.parametrize("max_characters", [5, 50])
def test_equals_torchs_own_convolutions_over_whole_rows(activation, num_highway, max_characters):
    encoder = build(activation=activation, num_highway=num_highway, max_characters=max_characters)
    ids = ids_of(WORDS, max_characters=max_characters)
    assert encoder(ids).shape == (len(WORDS), 5)
    assert encoder(ids[:0].to(torch.int16)).shape == (0, 5)
    torch.testing.assert_close(encoder(ids), plain(encoder, ids), atol=1e-6, rtol=0)


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_fresh_weights_are_those_of_the_original(activation):
    config = CharCNNConfig(activation=activation)
    encoder = CharTokenEncoder(config, output_dim=64, max_characters=50)
    encoder.reset_parameters(torch.Generator().manual_seed(0))
    assert not encoder.char_embedding.weight[0].any()
    assert encoder.char_embedding.weight.abs().max() <= 1
    assert encoder.char_embedding.weight[1:].std().item() == pytest.approx(3**-0.5, rel=0.05)
    widest = encoder.convolutions[-1].weight
    if activation == "relu":
        assert widest.abs().max() <= 0.05
    else:
        assert widest.std().item() == pytest.approx((7 * 16) ** -0.5, rel=0.02)
    assert encoder.projection.weight.std().item() == pytest.approx(2048**-0.5, rel=0.02)
    assert not any(conv.bias.any() for conv in encoder.convolutions)
