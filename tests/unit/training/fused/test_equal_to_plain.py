"""The parts of the training loss, in C and in PyTorch, against the plain modules."""

from functools import partial

import pytest
import torch

from elmokit.bilm.char_cnn import CharCNNConfig, CharTokenEncoder
from elmokit.bilm.lstmp import LSTMP, LSTMConfig
from elmokit.bilm.softmax import SampledSoftmax
from elmokit.kernels import training
from elmokit.kernels.training import kernels_for
from elmokit.text.char_vocab import CharVocab, CharVocabConfig
from elmokit.training.fused import char_cnn as fused_cnn
from elmokit.training.fused import lstm as fused_lstm
from elmokit.training.fused.char_cnn import encode_tokens
from elmokit.training.fused.lstm import run_fused
from elmokit.training.fused.softmax import ROWS_TOGETHER, training_nlls

from ....builders.processors import PROCESSORS, kernels_of

CHARACTERS, INPUT, WORDS, DIM = 12, 6, 300, 10
TOKENS = ["a", "of", "ELMo", "aaaaaaa", "sentence", "", "<S>", "contextualized", "봄날", "the", "!"]
CNNS = {
    "usual": CharCNNConfig(filters=((1, 16), (2, 32), (3, 70), (7, 74)), num_highway=2),
    "tanh": CharCNNConfig(filters=((2, 24), (5, 24)), num_highway=1, activation="tanh"),
    "narrow embedding": CharCNNConfig(embedding_dim=6, filters=((1, 8), (12, 8)), num_highway=1),
    "wide filters": CharCNNConfig(filters=((9, 5), (12, 4)), num_highway=0),
}
CELLS = {
    "clips": LSTMConfig(cell_dim=48, projection_dim=18, cell_clip=0.5, projection_clip=0.2),
    "no clips": LSTMConfig(cell_dim=80, projection_dim=70, cell_clip=None, projection_clip=None),
    "no projection": LSTMConfig(cell_dim=32, projection_dim=32, cell_clip=0.5),
}


@pytest.fixture(params=list(PROCESSORS))
def with_kernels(request, tmp_path_factory, monkeypatch):
    """Training finds the kernels as each of the processors has them."""
    loaded = training.load_training_kernels()
    kernels = kernels_of(request.param, loaded, "training", tmp_path_factory)
    is_narrower = kernels.vector_length < loaded.vector_length
    assert kernels.has_bf16 == (loaded.has_bf16 and not is_narrower)
    monkeypatch.setattr(training, "load_training_kernels", lambda: kernels)
    return kernels


def on_threads(count, function):
    """Run a function on so many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        return function()
    finally:
        torch.set_num_threads(before)


def seeded(seed):
    return torch.Generator().manual_seed(seed)


@torch.autocast("cpu", enabled=False)
def with_gradients(values, leaves):
    """Values, and the gradients of a loss that uses each of their numbers."""
    # transposed, as the loss may read the values: gradients have its layout
    weights = [
        torch.linspace(-1, 1, value.numel())
        .view(value.shape[::-1])
        .permute(tuple(range(value.ndim))[::-1])
        for value in values
    ]
    loss = sum((value * weight).sum() for value, weight in zip(values, weights, strict=True))
    return [*(value.detach() for value in values), *torch.autograd.grad(loss, leaves)]


def build_encoder(config):
    encoder = CharTokenEncoder(config, output_dim=DIM, max_characters=CHARACTERS)
    encoder.reset_parameters(seeded(0))
    with torch.no_grad():
        for convolution in encoder.convolutions:
            convolution.weight.mul_(4)
            convolution.bias.normal_(std=0.1, generator=seeded(1))
    return encoder


def char_ids(copies):
    """Words, a padded token, and a row of the longest kind."""
    vocab = CharVocab(CharVocabConfig(max_characters=CHARACTERS))
    rows = torch.from_numpy(vocab.encode_words(TOKENS).astype("int64"))
    return torch.cat((rows, torch.zeros(1, CHARACTERS, dtype=torch.int64))).repeat(copies, 1)


def char_cnn(config, copies, *, is_fused):
    encoder, ids = build_encoder(config), char_ids(copies)
    out = encode_tokens(encoder, ids) if is_fused else encoder(ids)
    return with_gradients([out], list(encoder.parameters()))


def recurrence(config, rows, *, is_fused, dtype=torch.float32):
    layer, generator = LSTMP(INPUT, config).to(dtype), seeded(9)
    with torch.no_grad():
        for index, parameter in enumerate(layer.parameters()):
            parameter.normal_(std=0.2, generator=seeded(index))
    shapes = (rows, 5, INPUT), (rows, config.projection_dim), (rows, config.cell_dim)
    x, hidden, cell = (
        (scale * torch.randn(*shape, generator=generator, dtype=dtype)).requires_grad_()
        for scale, shape in zip((1.0, 0.2, 0.4), shapes, strict=True)
    )
    run = partial(run_fused, layer) if is_fused else layer
    outputs, state = run(x, (hidden, cell))
    return with_gradients([outputs, *state], [x, hidden, cell, *layer.parameters()])


def build_softmax(num_samples):
    softmax = SampledSoftmax(WORDS, DIM, num_samples=num_samples)
    softmax.reset_parameters(seeded(0))
    with torch.no_grad():
        softmax.bias.normal_(generator=seeded(1))
    return softmax


def sampled_softmax(num_samples, rows, *, is_fused):
    softmax, generator = build_softmax(num_samples), seeded(2)
    hiddens = [torch.randn(rows, DIM, generator=generator).requires_grad_() for _ in range(2)]
    # frequent words: candidates hit targets
    ids = [torch.randint(1, 40, (rows,), generator=generator) for _ in range(2)]
    draws = [seeded(0), seeded(1)]
    if is_fused:
        losses = training_nlls(softmax, hiddens, ids, generators=draws)
    else:
        directions = zip(hiddens, ids, draws, strict=True)
        losses = [softmax.training_nll(h, i, generator=draw) for h, i, draw in directions]
    return with_gradients(losses, [*hiddens, softmax.weight, softmax.bias])


PARTS = {
    **{f"char CNN, {name}, {copies}": partial(char_cnn, config, copies)
       for name, config in CNNS.items() for copies in (1, 9)},
    **{f"recurrence, {name}": partial(recurrence, config, 7) for name, config in CELLS.items()},
    **{f"sampled softmax, {num_samples} of {rows}": partial(sampled_softmax, num_samples, rows)
       for num_samples in (32, 77) for rows in (5, ROWS_TOGETHER + 3)},
}  # fmt: skip
TOLERANCES = {
    "char CNN": (2e-5, CharTokenEncoder, "forward"),
    "recurrence": (5e-6, fused_lstm, "TorchRecurrence"),
    "sampled softmax": (1e-5, SampledSoftmax, "sampled_nll"),
}
"""The largest error of a part, and what else would compute the same."""


def largest_error(ours, expected):
    """Over all values, relative to the largest of each tensor."""
    return max(
        float((a - b).abs().max() / b.abs().max()) for a, b in zip(ours, expected, strict=True)
    )


@pytest.mark.parametrize("part", PARTS)
def test_values_and_gradients_equal_the_plain_module(with_kernels, part, monkeypatch):
    tolerance, *not_run = TOLERANCES[part.partition(",")[0]]
    expected = PARTS[part](is_fused=False)
    monkeypatch.delattr(*not_run)
    assert largest_error(PARTS[part](is_fused=True), expected) < tolerance


@pytest.mark.parametrize("name", CELLS)
def test_in_pytorch_a_recurrence_equals_the_plain_layer(name, monkeypatch):
    monkeypatch.delattr(fused_lstm, "KernelRecurrence")
    ours, expected = (
        recurrence(CELLS[name], 7, is_fused=is_fused, dtype=torch.float64)
        for is_fused in (True, False)
    )
    assert largest_error(ours, expected) < 1e-12


HALF_WIDTH = {"char CNN, usual, 1": 0.15, "sampled softmax, 77 of 5": 0.02}
HALF_WIDTH |= {f"recurrence, {name}": 0.1 for name in CELLS}


@pytest.mark.parametrize("part", HALF_WIDTH)
def test_half_width_is_near_and_its_results_are_wide(part):
    """Whether a clip holds, and which of two like windows wins, hangs on the last digit."""
    with torch.autocast("cpu", dtype=torch.bfloat16):
        if kernels_for(torch.zeros(1)) is None:
            pytest.skip("no instructions for bf16 on this machine")
        half = PARTS[part](is_fused=True)
    exact = PARTS[part](is_fused=True)
    assert all(tensor.dtype == torch.float32 for tensor in half)
    errors = [float((a - b).norm() / b.norm()) for a, b in zip(half, exact, strict=True)]
    assert 1e-5 < max(errors) < HALF_WIDTH[part]
    assert errors[0] < 0.02


def convolutions(kernels):
    """Without the products between them, which are PyTorch's."""
    encoder, ids = build_encoder(CNNS["usual"]), char_ids(5)
    weights, biases = zip(*((one.weight, one.bias) for one in encoder.convolutions), strict=True)
    leaves = [encoder.char_embedding.weight, *weights, *biases]
    out = fused_cnn._Convolutions.apply(kernels, torch.float32, ids, False, *leaves)
    return with_gradients([out], leaves)


@pytest.mark.parametrize("part", ["convolutions", "recurrence", "sampled softmax"])
def test_no_bit_hangs_on_the_number_of_threads(with_kernels, part):
    """Few rows of a recurrence are shared by columns, many by rows."""

    def run():
        if part == "convolutions":
            return convolutions(with_kernels)
        if part == "recurrence":
            runs = [recurrence(c, rows, is_fused=True) for c in CELLS.values() for rows in (3, 60)]
            return [value for results in runs for value in results[:3]]
        return sampled_softmax(77, 50, is_fused=True)[:2]

    alone, *others = (on_threads(count, run) for count in (1, 2, 5))
    for other in others:
        assert all(torch.equal(a, b) for a, b in zip(alone, other, strict=True))


@pytest.mark.parametrize("wrong", [-1, 263])
def test_characters_without_an_embedding_are_refused(with_kernels, wrong):
    encoder, ids = build_encoder(CNNS["usual"]), char_ids(1)
    ids[1, 2] = wrong
    highest = len(encoder.char_embedding.weight) - 1
    with pytest.raises(ValueError, match=rf"character ids .*\b0 .*\b{highest}, .* {wrong}\."):
        encode_tokens(encoder, ids)


@pytest.mark.parametrize("wrong", [0, WORDS + 1])
def test_targets_that_are_no_words_are_refused(with_kernels, wrong):
    hiddens, ids = [torch.zeros(3, DIM)], [torch.tensor([1, wrong, WORDS])]
    with pytest.raises(ValueError, match=rf"target ids .*\b1 .*\b{WORDS}, .* {wrong}\."):
        training_nlls(build_softmax(32), hiddens, ids, generators=[seeded(0)])
