"""The whole training loss with compiled kernels and without: equal losses, states and gradients."""

import dataclasses

import numpy as np
import pytest
import torch

from elmokit.bilm.bilm import BiLM, BiLMConfig, BiLMState
from elmokit.bilm.char_cnn import CharCNNConfig
from elmokit.bilm.lstmp import LSTMConfig
from elmokit.bilm.softmax import SampledSoftmax
from elmokit.corpus.packing import WindowBatch
from elmokit.kernels import training
from elmokit.text.char_vocab import CharVocab, CharVocabConfig
from elmokit.training.pretraining.updates import BiLMLoss, WindowTensors

ROWS, STEPS, WORDS = 6, 5, 60
CONFIG = BiLMConfig(
    char_vocab=CharVocabConfig(max_characters=14),
    char_cnn=CharCNNConfig(filters=((1, 8), (3, 24)), num_highway=2),
    lstm=LSTMConfig(cell_dim=32, projection_dim=12),
    dropout=0.2,
)


def window():
    generator = np.random.default_rng(0)
    words = [f"w{'x' * int(generator.integers(9))}{k}" for k in range(WORDS - 1)]
    word_ids = np.arange(1, WORDS, dtype=np.int64)

    ids = [generator.integers(low, WORDS - 1, size=(ROWS, STEPS)) for low in (0, 0, 1, 1)]
    return WindowBatch(CharVocab(CONFIG.char_vocab).encode_words(words), word_ids, *ids)


def results():
    model = BiLM(CONFIG)
    softmax = SampledSoftmax(WORDS, CONFIG.lstm.projection_dim, num_samples=16)
    softmax.reset_parameters(torch.Generator().manual_seed(1))
    loss = BiLMLoss(model, softmax, dropout=CONFIG.dropout, seed=3, num_rows=ROWS)
    batch = WindowTensors.from_batch(window(), word_input=False, device=torch.device("cpu"))
    state = BiLMState.zeros(CONFIG.lstm, ROWS)
    _, _, state = loss(batch, state, 0)
    forward, backward, state = loss(batch, state, 1)
    (forward + 2 * backward).backward()
    gradients = {name: parameter.grad for name, parameter in loss.named_parameters()}
    return {
        "forward": forward.detach(), "backward": backward.detach(),
        **dataclasses.asdict(state), **gradients,
    }  # fmt: skip


def test_the_loss_is_that_of_pytorch_alone(monkeypatch):
    if training.load_training_kernels() is None:
        pytest.skip("no C compiler on this machine")
    ours = results()
    monkeypatch.setattr(training, "load_training_kernels", lambda: None)
    without = results()
    assert any(not torch.equal(ours[name], expected) for name, expected in without.items())
    for name, expected in without.items():
        torch.testing.assert_close(
            ours[name], expected, rtol=1e-4, atol=1e-5 * float(expected.abs().max()), msg=name
        )
