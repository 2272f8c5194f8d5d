"""The pre-training loss on a window."""

import dataclasses

import pytest
import torch

from elmokit.bilm.bilm import BiLMState
from elmokit.bilm.lstmp import LSTMConfig
from elmokit.bilm.softmax import SoftmaxConfig
from elmokit.corpus.stream import WindowStream
from elmokit.kernels import training
from elmokit.training.pretraining.loss import BiLMLoss, WindowTensors
from elmokit.weights.model_dir import PretrainedBiLM

from ....builders.training_models import VOCAB, toy_config, toy_model

ROWS, STEPS = 4, 6


def windows(text, model, *, num=1):
    """The first windows of the corpus, as tensors."""
    stream = iter(
        WindowStream(text.shards, VOCAB, model.char_vocab, batch_size=ROWS, num_steps=STEPS)
    )
    word_input = model.config.char_cnn is None
    return [
        WindowTensors.from_batch(next(stream)[0], word_input=word_input, device=torch.device("cpu"))
        for _ in range(num)
    ]


def loss_of(model, *, dropout=0.0, seed=0, **settings):
    settings = {"dropout": dropout, "seed": seed, "num_rows": ROWS, "first_row": 0} | settings
    return BiLMLoss(model, model.softmax, **settings)


def zeros(model, num_rows=ROWS):
    return BiLMState.zeros(model.config.lstm, num_rows)


@pytest.mark.parametrize("word_input", [False, True])
def test_equals_a_plain_computation(text, word_input):
    model = toy_model(word_input=word_input)
    (batch,) = windows(text, model)
    forward, backward, state = loss_of(model)(batch, zeros(model), 0)
    for loss, direction, inputs, targets in (
        (forward, "forward", batch.forward_inputs, batch.forward_targets),
        (backward, "backward", batch.backward_inputs, batch.backward_targets),
    ):
        start = zeros(model).direction(direction)
        outputs, last = model.run_direction(
            direction, model.encode_tokens(batch.token_ids)[inputs], state=start
        )
        logits = outputs[-1] @ model.softmax.weight.T + model.softmax.bias
        expected = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten() - 1)
        torch.testing.assert_close(loss, expected)
        torch.testing.assert_close(state.direction(direction)[1], last[1])


def results_of_two_windows(text):
    """Losses, state and gradients, where the kernels may be used."""
    lstm = LSTMConfig(cell_dim=32, projection_dim=12)
    config, softmax = dataclasses.replace(toy_config(), lstm=lstm), SoftmaxConfig(num_samples=6)
    model = PretrainedBiLM(config, word_vocab=VOCAB, softmax_config=softmax)
    model.reset_parameters(torch.Generator().manual_seed(1))
    loss, state = loss_of(model, dropout=0.2, seed=3), zeros(model)
    for step, batch in enumerate(windows(text, model, num=2)):
        forward, backward, state = loss(batch, state, step)
    (forward + 2 * backward).backward()
    gradients = {name: parameter.grad for name, parameter in loss.named_parameters()}
    losses = {"forward": forward.detach(), "backward": backward.detach()}
    return losses | dataclasses.asdict(state) | gradients


def test_with_compiled_kernels_it_is_that_of_pytorch_alone(text, monkeypatch):
    if training.load_training_kernels() is None:
        pytest.skip("no C compiler on this machine")
    ours = results_of_two_windows(text)
    monkeypatch.setattr(training, "load_training_kernels", lambda: None)
    without = results_of_two_windows(text)
    assert any(not torch.equal(ours[name], expected) for name, expected in without.items())
    for name, expected in without.items():
        tolerance = 1e-5 * float(expected.abs().max())
        torch.testing.assert_close(ours[name], expected, rtol=1e-4, atol=tolerance, msg=name)


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_another_step_or_seed_draws_anew(text, dropout):
    """Dropout and candidates are functions of seed and step."""
    model = toy_model(softmax=SoftmaxConfig(num_samples=6))
    (batch,) = windows(text, model)
    losses = {
        loss_of(model, dropout=dropout, seed=seed)(batch, zeros(model), step)[direction].item()
        for seed, step in ((0, 5), (0, 6), (1, 5))
        for direction in (0, 1)
    }
    assert len(losses) == 6


def test_rows_that_restart_begin_at_the_zero_state(text):
    model = toy_model()
    first, second = windows(text, model, num=2)
    _, _, state = loss_of(model)(first, zeros(model), 0)
    restarts = torch.tensor([True, False, True, False])
    restarted = dataclasses.replace(second, restarts=restarts)
    _, _, ours = loss_of(model)(restarted, state, 1)
    _, _, carried = loss_of(model)(second, state, 1)
    _, _, fresh = loss_of(model)(second, zeros(model), 1)
    for name in ("hidden", "cell"):
        value = getattr(ours, name)
        torch.testing.assert_close(value[:, :, restarts], getattr(fresh, name)[:, :, restarts])
        torch.testing.assert_close(value[:, :, ~restarts], getattr(carried, name)[:, :, ~restarts])
        assert not torch.allclose(value, getattr(carried, name))
