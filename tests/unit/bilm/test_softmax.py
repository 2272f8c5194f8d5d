"""Full, sampled and adaptive softmax: exact where they say so, unbiased where they sample."""

import math

import pytest
import torch

from elmokit.bilm.softmax import (
    FullSoftmax,
    LogUniformSampler,
    SampledSoftmax,
    SoftmaxConfig,
    build_softmax,
)

NUM_WORDS, DIM = 40, 6


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def build(kind, **settings):
    softmax = build_softmax(SoftmaxConfig(kind=kind, **settings), NUM_WORDS, DIM)
    softmax.reset_parameters(generator())
    return softmax


def inputs(num=300):
    """Hidden vectors and word ids 1..V."""
    hidden = 2 * torch.randn(num, DIM, generator=generator(1))
    return hidden, torch.randint(1, NUM_WORDS + 1, (num,), generator=generator(2))


def all_nll(softmax, hidden):
    """(X, V): the loss of every word at every position."""
    columns = [
        softmax.nll(hidden, torch.full((len(hidden),), word_id))
        for word_id in range(1, softmax.num_words + 1)
    ]
    return torch.stack(columns, dim=1)


@pytest.mark.parametrize("kind", ["full", "sampled", "adaptive"])
def test_under_autocast_all_but_the_products_is_in_full_precision(kind):
    """A large bias is exact in fp32, and off by up to 2 in bf16."""
    softmax = build(kind, num_samples=8)
    with torch.no_grad():
        for name, parameter in softmax.named_parameters():
            parameter.fill_(300.7) if name.endswith("bias") else parameter.mul_(1e-3)
    hidden, word_ids = inputs()
    expected = softmax.training_nll(hidden, word_ids, generator=generator())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = softmax.training_nll(hidden, word_ids, generator=generator())
        exact = softmax.nll(hidden, word_ids)
    assert loss.dtype == exact.dtype == torch.float32
    torch.testing.assert_close(loss, expected, atol=2e-3, rtol=0)
    torch.testing.assert_close(exact, softmax.nll(hidden, word_ids), atol=2e-3, rtol=0)
    loss.mean().backward()


@pytest.mark.parametrize("kind", ["full", "adaptive"])
def test_fresh_weights_keep_the_scale_of_what_they_read(kind):
    softmax = build_softmax(SoftmaxConfig(kind=kind), 4000, 64)
    softmax.reset_parameters(generator())
    for weight in softmax.parameters():
        if weight.dim() > 1:
            expected = weight.shape[1] ** -0.5
            assert weight.std().item() == pytest.approx(expected, rel=0.15)
            assert abs(weight.mean().item()) <= 0.2 * expected
        elif kind == "adaptive":
            assert not weight.any()


@pytest.mark.parametrize("kind", ["full", "sampled"])
def test_a_fresh_softmax_knows_the_ranks_of_words(kind):
    """Before it reads anything: Zipf's law, P(r) = 1 / r / (1 + 1/2 + ... + 1/V)."""
    losses = build(kind, num_samples=8).nll(torch.zeros(2, DIM), torch.tensor([1, NUM_WORDS]))
    total = sum(1 / rank for rank in range(1, NUM_WORDS + 1))
    assert losses.tolist() == pytest.approx([math.log(total), math.log(NUM_WORDS * total)])


@pytest.mark.parametrize("num_samples", [1, 9, 39])
def test_candidates_are_the_first_distinct_draws(num_samples):
    """However many rounds it takes: V = 40, K = 39 takes dozens."""
    random = generator(7)
    rounds = [torch.rand(2 * num_samples, generator=random, dtype=torch.float64)]
    for _ in range(400):
        rounds.append(torch.rand(2 * num_samples, generator=random, dtype=torch.float64))
    draws = (torch.cat(rounds) * math.log(41)).exp().long().sub(1).clamp(0, 39).tolist()
    first_of = {}
    for position, drawn in enumerate(draws):
        first_of.setdefault(drawn, position)
    expected = list(first_of)[:num_samples]
    candidates = LogUniformSampler(NUM_WORDS).draw(num_samples, generator=generator(7))
    assert candidates.classes.tolist() == expected
    assert candidates.num_tries == first_of[expected[-1]] + 1


def test_words_of_a_cluster_share_its_probability():
    """Head first, then the tail; so the probabilities of all words sum to one."""
    softmax = build("adaptive", cutoffs=(5, 20))
    probs = (-all_nll(softmax, inputs(3)[0])).exp()
    head = softmax.clusters.head(inputs(3)[0]).softmax(dim=1)  # 5 words and 2 clusters
    torch.testing.assert_close(probs[:, :5], head[:, :5])
    torch.testing.assert_close(probs[:, 5:20].sum(dim=1), head[:, 5])
    torch.testing.assert_close(probs[:, 20:].sum(dim=1), head[:, 6])


def test_a_cluster_without_targets_has_a_gradient_of_zero():
    """Averaging over processes needs a gradient of every parameter in each of them."""
    softmax = build("adaptive", cutoffs=(5, 20))
    word_ids = torch.tensor([1, 2, 6])  # none of the rarest cluster
    loss = softmax.training_nll(inputs(3)[0], word_ids, generator=generator())
    loss.mean().backward()
    assert all(p.grad is not None for p in softmax.parameters())
    assert all(not p.grad.any() for p in softmax.clusters.tail[1].parameters())


@pytest.mark.parametrize(
    ("num_samples", "kind"), [(19, SampledSoftmax), (20, FullSoftmax), (40, FullSoftmax)]
)
def test_a_sample_of_half_the_vocabulary_gives_the_full_softmax(num_samples, kind):
    softmax = build_softmax(SoftmaxConfig(num_samples=num_samples), NUM_WORDS, DIM)
    assert type(softmax) is kind
