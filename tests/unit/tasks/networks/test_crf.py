"""The CRF's log-likelihood, by enumeration of all sequences."""

from itertools import pairwise, product

import pytest
import torch

from elmokit.tasks.networks.crf import CRF

LENGTHS = [4, 1, 0, 3]
NUM_TAGS = 3
TAGS = torch.tensor([[0, 1, 2, 0], [0, 9, 9, 9], [-5, 9, 9, 9], [1, 2, 2, -7]])


@pytest.fixture
def crf():
    crf = CRF(NUM_TAGS)
    crf.reset_parameters(torch.Generator().manual_seed(0))
    with torch.no_grad():
        crf.transitions.mul_(10)
    return crf.double()


def score_of(crf, logits, sequence):
    score = torch.zeros((), dtype=torch.float64)
    score = score + sum(logits[t, tag] for t, tag in enumerate(sequence))
    return score + sum(crf.transitions[a, b] for a, b in pairwise(sequence))


def test_log_likelihood_equals_enumeration(crf):
    logits = torch.randn(4, 4, NUM_TAGS, dtype=torch.float64)
    mask = torch.arange(4).unsqueeze(0) < torch.tensor(LENGTHS).unsqueeze(1)
    logits[~mask] = torch.nan
    for row, (length, log_prob) in enumerate(zip(LENGTHS, crf(logits, TAGS, mask), strict=True)):
        sequences = product(range(NUM_TAGS), repeat=length)
        scores = [score_of(crf, logits[row], sequence) for sequence in sequences]
        gold = score_of(crf, logits[row], TAGS[row, :length].tolist())
        expected = gold - torch.logsumexp(torch.stack(scores), dim=0)
        assert log_prob.item() == pytest.approx(expected.item(), abs=1e-12)


@pytest.mark.parametrize("shape", [(2, 0), (0, 0), (0, 3), (2, 3)])
def test_nothing_to_learn(shape, crf):
    mask = torch.zeros(shape, dtype=torch.bool)
    logits = torch.zeros(*shape, NUM_TAGS, dtype=torch.float64).requires_grad_()
    log_probs = crf(logits, torch.zeros(shape, dtype=torch.long), mask)
    assert log_probs.tolist() == [0] * shape[0]
    if log_probs.requires_grad:
        log_probs.sum().backward()
        assert not logits.grad.any()
