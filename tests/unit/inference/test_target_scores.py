"""Losses of targets by a frozen softmax equal those of the module."""

import pytest
import torch

from elmokit.bilm.softmax import SoftmaxConfig, build_softmax
from elmokit.inference.target_scores import FREQUENT_WORDS, TargetScores

NUM_WORDS, DIM = 3 * FREQUENT_WORDS + 7, 10


def inputs(num_rows=70):
    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn(num_rows, DIM, generator=generator)
    return hidden, torch.randint(1, NUM_WORDS + 1, (num_rows,), generator=generator)


def softmax_of(kind, *, scale=1.0):
    softmax = build_softmax(SoftmaxConfig(kind=kind, num_samples=100), NUM_WORDS, DIM)
    softmax.reset_parameters(torch.Generator().manual_seed(1))
    with torch.no_grad():
        for weight in softmax.parameters():
            weight *= scale * 5
        if kind != "adaptive":
            softmax.bias.normal_(generator=torch.Generator().manual_seed(2))
    return softmax


@pytest.mark.parametrize("kind", ["full", "sampled", "adaptive"])
def test_equal_the_module(backend, kind):
    softmax = softmax_of(kind)
    scores = TargetScores(softmax)
    hidden, word_ids = inputs()
    with torch.no_grad():
        expected = softmax.nll(hidden, word_ids)
    torch.testing.assert_close(scores.nll(hidden, word_ids), expected, atol=1e-5, rtol=1e-6)
    assert len(scores.nll(hidden[:0], word_ids[:0])) == 0
    assert scores.nll(hidden.bfloat16(), word_ids).dtype == torch.float32


def test_bf16_stays_within_its_error_budget(backend):
    """For scores spread as those of the packaged models: by 2.2 nats."""
    softmax = softmax_of("full", scale=2.2 / 5)
    hidden, word_ids = inputs(2000)
    with torch.no_grad():
        expected = softmax.nll(hidden, word_ids)
    error = TargetScores(softmax, precision="bf16").nll(hidden, word_ids) - expected
    assert float(error.abs().max()) < 5e-2
    assert abs(float(error.mean())) < 3e-4


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_row_has_the_same_bits_in_any_company(backend, precision):
    if backend == "pytorch":
        pytest.skip("PyTorch's products depend on the number of rows in the last bits")
    scores = TargetScores(softmax_of("full"), precision=precision)
    hidden, word_ids = inputs()
    together = scores.nll(hidden, word_ids)
    alone = [scores.nll(hidden[k : k + 1], word_ids[k : k + 1]) for k in range(len(hidden))]
    assert torch.equal(together, torch.cat(alone))


def test_scores_of_any_size_neither_overflow_nor_vanish(backend):
    softmax = softmax_of("full", scale=40.0)
    hidden, word_ids = inputs()
    with torch.no_grad():
        expected = softmax.nll(hidden, word_ids)
    assert float(expected.max()) > 500
    torch.testing.assert_close(
        TargetScores(softmax).nll(hidden, word_ids), expected, atol=2e-3, rtol=1e-5
    )


def test_what_is_undefined_stays_so(backend):
    hidden, word_ids = inputs(3)
    hidden[1, 4] = float("nan")
    found = TargetScores(softmax_of("full")).nll(hidden, word_ids)
    assert found.isnan().tolist() == [False, True, False]


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_weights_are_those_of_the_moment(backend, precision):
    softmax = softmax_of("full")
    scores = TargetScores(softmax, precision=precision)
    hidden, word_ids = inputs()
    scores.nll(hidden, word_ids)
    with torch.no_grad():
        softmax.weight.mul_(3)
    in_place = scores.nll(hidden, word_ids)
    assert torch.equal(in_place, TargetScores(softmax, precision=precision).nll(hidden, word_ids))
    assert float(in_place.min()) >= 0
    softmax.bias = torch.nn.Parameter(-softmax.bias.detach())
    fresh = TargetScores(softmax, precision=precision)
    assert torch.equal(scores.nll(hidden, word_ids), fresh.nll(hidden, word_ids))
    if scores.measures:
        pairs = zip(scores.measure(hidden, word_ids), fresh.measure(hidden, word_ids), strict=True)
        assert all(torch.equal(found, expected) for found, expected in pairs)
