"""The loss against all words, made with its gradients block by block."""

import pytest
import torch

from elmokit.bilm.softmax import FullSoftmax, SampledSoftmax
from elmokit.training.fused import exact_softmax
from elmokit.training.fused.exact_softmax import exact_loss

WORDS, DIM, ROWS = 300, 10, 37


def results(run, *, autocast=False):
    softmax = SampledSoftmax(WORDS, DIM, num_samples=20)
    softmax.reset_parameters(torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        softmax.bias.normal_(generator=generator)
    hidden = torch.randn(ROWS, DIM, generator=generator).requires_grad_()
    ids = torch.randint(1, WORDS + 1, (ROWS,), generator=generator)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
        loss = run(softmax, hidden, ids)
    leaves = [hidden, softmax.weight, softmax.bias]
    return [loss.detach(), *torch.autograd.grad(3 * loss, leaves)]


def plain(softmax, hidden, ids):
    return softmax.nll(hidden, ids).mean()


@pytest.mark.parametrize("rows_together", [1, 8, 1000])
def test_value_and_gradients_equal_the_plain_softmax(with_kernels, rows_together, monkeypatch):
    expected = results(plain)
    monkeypatch.setattr(exact_softmax, "MAX_LOGITS", rows_together * WORDS)
    monkeypatch.delattr(FullSoftmax, "nll")  # it is not what runs
    for ours, wanted in zip(results(exact_loss), expected, strict=True):
        torch.testing.assert_close(ours, wanted, rtol=1e-5, atol=1e-5 * float(wanted.abs().max()))


def test_half_width_stays_close(with_kernels):
    for ours, wanted in zip(results(exact_loss, autocast=True), results(plain), strict=True):
        torch.testing.assert_close(ours, wanted, rtol=0.02, atol=0.02 * float(wanted.abs().max()))


def test_without_kernels_pytorch_computes_it(without_kernels):
    for ours, wanted in zip(results(exact_loss), results(plain), strict=True):
        assert torch.equal(ours, wanted)


def test_no_bit_hangs_on_the_number_of_threads(with_kernels, on_threads):
    alone, other = (on_threads(count, lambda: results(exact_loss)) for count in (1, 2))
    assert torch.equal(alone[0], other[0])


@pytest.mark.parametrize("wrong", [0, WORDS + 1])
def test_targets_that_are_no_words_are_refused(with_kernels, wrong):
    softmax = SampledSoftmax(WORDS, DIM, num_samples=20)
    with pytest.raises(ValueError, match=rf"target ids .*\b1 .*\b{WORDS}, .* {wrong}\."):
        exact_loss(softmax, torch.zeros(1, DIM), torch.tensor([wrong]))
