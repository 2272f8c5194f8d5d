import re

import pytest
import torch
from torch.nn import functional

from elmokit.bilm.char_cnn import CharCNNConfig, CharTokenEncoder, Highway, WordTokenEncoder
from elmokit.errors import ConfigError
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


def test_the_padding_character_is_not_masked():
    encoder, ids = build(), ids_of(["a"])
    before = encoder(ids)
    with torch.no_grad():
        encoder.char_embedding.weight[261] += 1.0
    assert (encoder(ids) - before).abs().max() > 1e-3


def test_the_maximum_is_taken_before_the_activation():
    """With every answer below zero relu gives zero, whichever came first; tanh keeps the order."""
    encoder = build(activation="tanh", num_highway=0, filters=((1, 5),))
    assert encoder.projection is None
    answers = functional.conv1d(
        encoder.char_embedding(ids_of(["ab"])).transpose(1, 2),
        encoder.convolutions[0].weight,
        encoder.convolutions[0].bias,
    )
    torch.testing.assert_close(encoder(ids_of(["ab"])), torch.tanh(answers.amax(dim=2)))


def test_wrong_row_length_is_refused():
    with pytest.raises(ValueError, match=r"`char_ids` .*\b50\b.*\(2, 40\)"):
        build()(torch.ones(2, 40, dtype=torch.int64))


def test_filters_wider_than_rows_are_refused():
    with pytest.raises(ValueError, match=r"width 5 .*max_characters=4"):
        build(max_characters=4)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("filters", ()),
        ("filters", ((0, 4),)),
        ("filters", ((1, 0),)),
        ("filters", ((51_000_000, 1),)),
        ("filters", ((1, 2**17),)),
        ("embedding_dim", 0),
        ("num_highway", -1),
    ],
)
def test_impossible_shapes_are_refused(name, value):
    with pytest.raises(ConfigError, match=rf"`{name}` .*{re.escape(str(value))}$"):
        CharCNNConfig(**{name: value})


def test_gradients_reach_every_parameter_but_the_padded_row():
    encoder = build()
    encoder(ids_of(WORDS)).square().sum().backward()
    for name, parameter in encoder.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name
    assert not encoder.char_embedding.weight.grad[0].any()
    assert encoder.char_embedding.weight.grad[261].any()


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


def test_word_vectors_are_looked_up():
    encoder = WordTokenEncoder(4, output_dim=3)
    encoder.reset_parameters(torch.Generator().manual_seed(0))
    vectors = encoder(torch.tensor([2, 0, 4]))
    assert torch.equal(vectors[0], encoder.embedding.weight[2])
    assert torch.equal(vectors[2], encoder.embedding.weight[4])
    assert not vectors[1].any()
    vectors.sum().backward()
    assert not encoder.embedding.weight.grad[0].any()
    assert encoder.embedding.weight.grad[2].any()


def test_the_gate_multiplies_the_transformed_branch():
    layer, x = Highway(4), torch.randn(6, 4, generator=torch.Generator().manual_seed(1))
    layer.reset_parameters(torch.Generator().manual_seed(0))
    gate = 1 / (1 + torch.exp(-(x @ layer.carry.weight.T + layer.carry.bias)))
    transformed = (x @ layer.transform.weight.T + layer.transform.bias).clamp(min=0)
    torch.testing.assert_close(layer(x), gate * transformed + (1 - gate) * x)


def test_a_fresh_highway_is_that_of_the_original_and_nearly_copies():
    layer = Highway(400)
    layer.reset_parameters(torch.Generator().manual_seed(0))
    assert (layer.carry.bias == -2).all()
    assert (layer.transform.bias == 0).all()
    for linear in (layer.carry, layer.transform):
        assert linear.weight.std().item() == pytest.approx(1 / 20, rel=0.02)
