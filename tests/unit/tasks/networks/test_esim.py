"""Dropout of ESIM: a mixture is dropped alike at the input and at the output."""

import pytest
import torch
from torch import Tensor

from elmokit.tasks.inputs.token_inputs import TokenBatch, TokenInputs
from elmokit.tasks.networks.esim import ESIM

from ....builders.task_models import full_inputs

DIM, WIDTH = 64, 8


def classifier(positions: str) -> ESIM:
    settings = full_inputs(positions=positions, dropout=0.0)
    inputs = TokenInputs(settings, num_layers=3, layers_dim=DIM, max_characters=9, static=None)
    return ESIM(inputs, ["yes", "no"], (WIDTH,))


def batch(num_words: int) -> TokenBatch:
    shape = (1, num_words)
    return TokenBatch(
        mask=torch.ones(shape, dtype=torch.bool),
        layers=torch.ones(3, *shape, DIM),
        char_ids=torch.ones(num_words, 9, dtype=torch.int64),
        word_index=torch.arange(num_words)[None],
        static_ids=None,
    )


def output_mixture(model: ESIM, words: TokenBatch) -> Tensor:
    return model._encode(words)[:, :, model.encoder.output_dim :]


@pytest.mark.parametrize("positions", ["output", "both"])
def test_half_of_the_output_mixture_is_dropped_the_same_at_all_words(positions):
    torch.manual_seed(0)
    mixture = output_mixture(classifier(positions), batch(5))
    assert mixture.shape == (1, 5, DIM)
    assert set(mixture.unique().tolist()) == {0.0, 2.0}
    assert 0.25 < (mixture == 0).float().mean() < 0.75
    assert (mixture == mixture[:, :1]).all()


@pytest.mark.parametrize("positions", ["input", "output", "both"])
def test_nothing_is_dropped_outside_training(positions):
    model, words = classifier(positions).eval(), batch(4)
    mixture = output_mixture(model, words)
    assert mixture.shape[2] == (0 if positions == "input" else DIM)
    assert (mixture == 1).all()
    assert torch.equal(model.logits(words, batch(3)), model.logits(words, batch(3)))


def test_what_stands_beside_the_output_mixture_is_not_dropped():
    torch.manual_seed(0)
    model = classifier("output")
    assert (model._encode(batch(3))[:, :, : model.encoder.output_dim] != 0).all()
