"""The training loss against the plain one: equal values, equal gradients."""

import pytest
import torch

from elmokit.bilm.softmax import FullSoftmax, SampledSoftmax
from elmokit.kernels.training import kernels_for
from elmokit.training.fused import exact_softmax
from elmokit.training.fused.exact_softmax import exact_loss
from elmokit.training.fused.softmax import ROWS_TOGETHER, training_nlls

WORDS, DIM, EXACT_ROWS = 300, 10, 37


def build(num_samples, *, kind=SampledSoftmax):
    arguments = {"num_samples": num_samples} if kind is SampledSoftmax else {}
    softmax = kind(WORDS, DIM, **arguments)
    softmax.reset_parameters(torch.Generator().manual_seed(0))
    with torch.no_grad():
        softmax.bias.normal_(generator=torch.Generator().manual_seed(1))
    return softmax


def plain(softmax, hiddens, word_ids, *, generators):
    return [
        softmax.training_nll(hidden, ids, generator=generator)
        for hidden, ids, generator in zip(hiddens, word_ids, generators, strict=True)
    ]


def results(run, softmax, rows, *, autocast=False):
    generator = torch.Generator().manual_seed(2)
    hiddens = [torch.randn(rows, DIM, generator=generator).requires_grad_() for _ in range(2)]
    # frequent words: candidates hit targets
    ids = [torch.randint(1, 40, (rows,), generator=generator) for _ in range(2)]
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
        losses = run(
            softmax, hiddens, ids, generators=[torch.Generator().manual_seed(k) for k in range(2)]
        )
    total = sum((loss * torch.linspace(0, 1, rows)).sum() for loss in losses)
    losses = [loss.detach() for loss in losses]
    return [*losses, *torch.autograd.grad(total, [*hiddens, softmax.weight, softmax.bias])]


@pytest.mark.parametrize("num_samples", [32, 77])
@pytest.mark.parametrize("rows", [5, ROWS_TOGETHER + 3])
def test_values_and_gradients_equal_the_plain_softmax(with_kernels, num_samples, rows, monkeypatch):
    softmax = build(num_samples)
    expected = results(plain, softmax, rows)
    monkeypatch.delattr(SampledSoftmax, "sampled_nll")  # it is not what runs
    for ours, wanted in zip(results(training_nlls, softmax, rows), expected, strict=True):
        torch.testing.assert_close(ours, wanted, rtol=1e-5, atol=1e-5 * float(wanted.abs().max()))


def test_no_bit_hangs_on_the_number_of_threads(with_kernels, on_threads):
    softmax = build(77)
    alone, *others = (
        on_threads(count, lambda: results(training_nlls, softmax, 50)[:2]) for count in (1, 2, 5)
    )
    for other in others:
        assert all(torch.equal(a, b) for a, b in zip(alone, other, strict=True))


def test_half_width_is_near():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        if kernels_for(torch.zeros(1)) is None:
            pytest.skip("no instructions for bf16 on this machine")
    softmax = build(64)
    exact, half = (results(training_nlls, softmax, 20, autocast=on) for on in (False, True))
    assert half[0].dtype == torch.float32
    assert 1e-5 < float((half[0] - exact[0]).abs().max()) < 0.02
    for ours, wanted in zip(half[2:], exact[2:], strict=True):
        assert float((ours - wanted).norm()) < 0.02 * float(wanted.norm())


@pytest.mark.parametrize("wrong", [0, WORDS + 1])
def test_targets_that_are_no_words_are_refused(with_kernels, wrong):
    ids = torch.tensor([1, wrong, WORDS])
    with pytest.raises(ValueError, match=rf"target ids .*\b1 .*\b{WORDS}, .* {wrong}\."):
        training_nlls(
            build(32),
            [torch.zeros(3, DIM)],
            [ids],
            generators=[torch.Generator()],
        )


def exact_results(run, *, autocast=False):
    softmax = SampledSoftmax(WORDS, DIM, num_samples=20)
    softmax.reset_parameters(torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        softmax.bias.normal_(generator=generator)
    hidden = torch.randn(EXACT_ROWS, DIM, generator=generator).requires_grad_()
    ids = torch.randint(1, WORDS + 1, (EXACT_ROWS,), generator=generator)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
        loss = run(softmax, hidden, ids)
    leaves = [hidden, softmax.weight, softmax.bias]
    return [loss.detach(), *torch.autograd.grad(3 * loss, leaves)]


def exact_plain(softmax, hidden, ids):
    return softmax.nll(hidden, ids).mean()


@pytest.mark.parametrize("rows_together", [1, 8, 1000])
def test_exact_value_and_gradients_equal_the_plain_softmax(
    with_kernels, rows_together, monkeypatch
):
    expected = exact_results(exact_plain)
    monkeypatch.setattr(exact_softmax, "MAX_LOGITS", rows_together * WORDS)
    monkeypatch.delattr(FullSoftmax, "nll")  # it is not what runs
    for ours, wanted in zip(exact_results(exact_loss), expected, strict=True):
        torch.testing.assert_close(ours, wanted, rtol=1e-5, atol=1e-5 * float(wanted.abs().max()))
