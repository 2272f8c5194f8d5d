"""Losses of targets by a frozen softmax equal those of the module."""

import numpy as np
import pytest
import torch

from elmokit.bilm.softmax import SoftmaxConfig
from elmokit.inference import target_scores
from elmokit.inference.target_scores import (
    FREQUENT_WORDS,
    DistributionTable,
    TargetScores,
    likeliest,
)

from ...builders.embedding_models import toy_model

NUM_WORDS, DIM = 3 * FREQUENT_WORDS + 7, 10


def inputs(num_rows=70):
    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn(num_rows, DIM, generator=generator)
    word_ids = torch.randint(1, NUM_WORDS + 1, (num_rows,), generator=generator)
    return hidden.numpy(), word_ids.numpy()


def softmax_and_scores(kind, *, scale=1.0, precision="fp32"):
    """A module, and what computes the same of its arrays."""
    config = SoftmaxConfig(kind=kind, num_samples=100)
    model = toy_model(projection_dim=DIM, softmax_config=config, num_words=NUM_WORDS)
    with torch.no_grad():
        for name, weight in model.softmax.named_parameters():
            weight *= scale * 5
            if name == "bias":
                weight.normal_(generator=torch.Generator().manual_seed(2))
    return model.softmax, TargetScores(model.stored(), precision=precision)


@torch.no_grad()
def expected_nll(softmax, hidden, word_ids):
    return softmax.nll(torch.from_numpy(hidden), torch.from_numpy(word_ids)).numpy()


@pytest.mark.parametrize("kind", ["full", "sampled", "adaptive"])
def test_equal_the_module(backend, kind, monkeypatch):
    monkeypatch.setattr(target_scores, "MAX_SCORES", 20 * NUM_WORDS)  # 20 rows at a time, of 70
    softmax, scores = softmax_and_scores(kind)
    hidden, word_ids = inputs()
    expected = expected_nll(softmax, hidden, word_ids)
    np.testing.assert_allclose(scores.nll(hidden, word_ids), expected, atol=1e-5, rtol=1e-6)
    assert len(scores.nll(hidden[:0], word_ids[:0])) == 0
    contexts = np.arange(70)[::-1] // 2
    expected = expected_nll(softmax, hidden[contexts], word_ids)
    shared = scores.nll(hidden[:35], word_ids, contexts)
    np.testing.assert_allclose(shared, expected, atol=1e-5, rtol=1e-6)
    with torch.no_grad():
        all_words = softmax.scores(torch.from_numpy(hidden)).log_softmax(dim=1)
    np.testing.assert_allclose(scores.log_probs(hidden), all_words.numpy(), atol=2e-5, rtol=1e-6)


@pytest.mark.parametrize("kind", ["full", "adaptive"])
def test_distributions_have_ranks_entropies_and_likeliest_words(backend, kind, monkeypatch):
    monkeypatch.setattr(target_scores, "MAX_SCORES", 4 * NUM_WORDS + 1)
    softmax, scores = softmax_and_scores(kind)
    hidden, word_ids = inputs(9)
    with torch.no_grad():
        log_probs = softmax.scores(torch.from_numpy(hidden)).log_softmax(dim=1)
    table, rows = DistributionTable.empty(9, 5), np.arange(9)[::-1].copy()
    losses = scores.describe(hidden, word_ids, rows, into=table)
    expected = expected_nll(softmax, hidden, word_ids)
    np.testing.assert_allclose(losses, expected, atol=1e-5, rtol=1e-6)
    targets = log_probs[torch.arange(9), torch.from_numpy(word_ids) - 1]
    assert table.ranks[rows].tolist() == (1 + (log_probs > targets[:, None]).sum(1)).tolist()
    entropies = -(log_probs.exp() * log_probs).sum(1) / np.log(2)
    np.testing.assert_allclose(table.entropies[rows], entropies, atol=1e-4)
    top = log_probs.topk(5, dim=1)
    assert table.top_ids[rows].tolist() == (top.indices + 1).tolist()
    np.testing.assert_allclose(table.top_probs[rows], top.values.exp(), atol=1e-5)
    without = DistributionTable.empty(9, 0)
    scores.describe(hidden, word_ids, rows, into=without)
    assert np.array_equal(without.ranks, table.ranks)
    np.testing.assert_allclose(without.entropies, table.entropies, atol=1e-5)


def test_of_equally_likely_words_the_first_come_first():
    log_probs = np.array([[1.0, 3, 2, 3, 0], [5, 1, 2, 3, 4]])
    assert likeliest(log_probs, 3).tolist() == [[1, 3, 2], [0, 4, 3]]
    assert likeliest(log_probs, 5).tolist() == [[1, 3, 2, 0, 4], [0, 4, 3, 2, 1]]
    assert likeliest(log_probs, 0).shape == (2, 0)


def test_bf16_stays_within_its_error_budget(backend):
    """For scores spread as those of the packaged models: by 2.2 nats."""
    softmax, scores = softmax_and_scores("full", scale=2.2 / 5, precision="bf16")
    hidden, word_ids = inputs(2000)
    error = scores.nll(hidden, word_ids) - expected_nll(softmax, hidden, word_ids)
    assert float(np.abs(error).max()) < 5e-2
    assert abs(float(error.mean())) < 3e-4


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_row_has_the_same_bits_in_any_company(backend, precision):
    if backend == "numpy":
        pytest.skip("NumPy's products depend on the number of rows in the last bits")
    _, scores = softmax_and_scores("full", precision=precision)
    hidden, word_ids = inputs()
    together = scores.nll(hidden, word_ids)
    alone = [scores.nll(hidden[k : k + 1], word_ids[k : k + 1]) for k in range(len(hidden))]
    assert np.array_equal(together, np.concatenate(alone))
