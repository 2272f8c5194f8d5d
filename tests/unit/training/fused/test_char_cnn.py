"""The training encoder against the plain one: equal values, equal gradients."""

import pytest
import torch

from elmokit.bilm.char_cnn import CharCNNConfig, CharTokenEncoder
from elmokit.kernels.training import kernels_for
from elmokit.text.char_vocab import CharVocab, CharVocabConfig
from elmokit.training.fused import char_cnn as fused_cnn
from elmokit.training.fused.char_cnn import encode_tokens

CHARACTERS = 12
WORDS = ["a", "of", "ELMo", "aaaaaaa", "sentence", "", "<S>", "contextualized", "봄날", "the", "!"]
CONFIGS = {
    "usual": CharCNNConfig(filters=((1, 16), (2, 32), (3, 70), (7, 74)), num_highway=2),
    "tanh": CharCNNConfig(filters=((2, 24), (5, 24)), num_highway=1, activation="tanh"),
    "narrow embedding": CharCNNConfig(embedding_dim=6, filters=((1, 8), (12, 8)), num_highway=1),
    "wide filters": CharCNNConfig(filters=((9, 5), (12, 4)), num_highway=0),
}


@pytest.fixture(params=CONFIGS.values(), ids=CONFIGS.keys())
def config(request):
    return request.param


def build(config, *, output_dim=10):
    encoder = CharTokenEncoder(config, output_dim=output_dim, max_characters=CHARACTERS)
    encoder.reset_parameters(torch.Generator().manual_seed(0))
    with torch.no_grad():
        for convolution in encoder.convolutions:
            convolution.weight.mul_(4)
            convolution.bias.normal_(std=0.1, generator=torch.Generator().manual_seed(1))
    return encoder


def char_ids(*, copies=1):
    """Words, a padded token, and a row of the longest kind."""
    rows = torch.from_numpy(
        CharVocab(CharVocabConfig(max_characters=CHARACTERS)).encode_words(WORDS).astype("int64")
    )
    return torch.cat((rows, torch.zeros(1, CHARACTERS, dtype=torch.int64))).repeat(copies, 1)


def results(run, encoder, ids, *, autocast=False):
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
        out = run(encoder, ids)
    weights = torch.linspace(-1, 1, out.numel()).view_as(out)
    gradients = torch.autograd.grad((out * weights).sum(), list(encoder.parameters()))
    return [out.detach(), *gradients]


def plain(encoder, ids):
    return encoder(ids)


@pytest.mark.parametrize("copies", [1, 9])
def test_values_and_gradients_equal_the_plain_encoder(with_kernels, config, copies, monkeypatch):
    encoder, ids = build(config), char_ids(copies=copies)
    expected = results(plain, encoder, ids)
    monkeypatch.delattr(CharTokenEncoder, "forward")  # it is not what runs
    for ours, wanted in zip(results(encode_tokens, encoder, ids), expected, strict=True):
        torch.testing.assert_close(ours, wanted, rtol=2e-5, atol=2e-5 * float(wanted.abs().max()))


def test_no_bit_hangs_on_the_number_of_threads(with_kernels, config, on_threads):
    """Of convolutions and their gradients; products between them are PyTorch's."""
    encoder = build(config)
    ids = char_ids(copies=5)

    def convolve():
        out = fused_cnn._Convolutions.apply(
            with_kernels,
            torch.float32,
            ids,
            False,
            encoder.char_embedding.weight,
            *(convolution.weight for convolution in encoder.convolutions),
            *(convolution.bias for convolution in encoder.convolutions),
        )
        weights = torch.linspace(-1, 1, out.numel()).view_as(out)
        parameters = [encoder.char_embedding.weight, *encoder.convolutions.parameters()]
        return [out, *torch.autograd.grad((out * weights).sum(), parameters)]

    alone, *others = (on_threads(count, convolve) for count in (1, 2, 5))
    for other in others:
        assert all(torch.equal(a, b) for a, b in zip(alone, other, strict=True))


def test_half_width_is_near():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        if kernels_for(torch.zeros(1)) is None:
            pytest.skip("no instructions for bf16 on this machine")
    encoder, ids = build(CONFIGS["usual"]), char_ids()
    exact, half = (results(encode_tokens, encoder, ids, autocast=on) for on in (False, True))
    assert half[0].dtype == torch.float32
    assert 1e-4 < float((half[0] - exact[0]).abs().max()) < 0.02 * float(exact[0].abs().max())
    for ours, wanted in zip(half[1:], exact[1:], strict=True):
        # of two windows that are nearly alike the other may win
        assert float((ours - wanted).norm()) < 0.15 * float(wanted.norm())


@pytest.mark.parametrize("wrong", [-1, 263])
def test_characters_without_an_embedding_are_refused(with_kernels, wrong):
    encoder, ids = build(next(iter(CONFIGS.values()))), char_ids()
    ids[1, 2] = wrong
    highest = len(encoder.char_embedding.weight) - 1
    with pytest.raises(ValueError, match=rf"character ids .*\b0 .*\b{highest}, .* {wrong}\."):
        encode_tokens(encoder, ids)
