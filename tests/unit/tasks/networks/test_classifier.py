"""Dropout of ESIM: a mixture is dropped alike at the input and at the output."""

import pytest
import torch

from elmokit.tasks.inputs.token_inputs import TokenBatch, TokenInputs
from elmokit.tasks.networks.classifier import ESIM
from elmokit.text.char_vocab import CharVocab

from ....builders.task_models import full_inputs

DIM, WIDTH = 64, 8


def classifier(positions):
    settings = full_inputs(positions=positions, dropout=0.0)
    inputs = TokenInputs(settings, CharVocab(), num_layers=3, layers_dim=DIM, static=None)
    model = ESIM(inputs, ["yes", "no"], (WIDTH,), dropout=0.5)
    model.reset_parameters(torch.Generator().manual_seed(0))
    return model


def batch(num_words):
    shape = (1, num_words)
    return TokenBatch(
        mask=torch.ones(shape, dtype=torch.bool),
        layers=torch.ones(3, *shape, DIM),
        char_ids=torch.ones(num_words, 50, dtype=torch.int64),
        word_index=torch.arange(num_words)[None],
    )


@pytest.mark.parametrize("positions", ["output", "both"])
def test_half_of_the_output_mixture_alone_is_dropped_the_same_at_all_words(positions):
    torch.manual_seed(0)
    model = classifier(positions)
    encoded, mixture = model._encode(batch(5)).tensor_split([model.encoder.output_dim], dim=2)
    assert mixture.shape == (1, 5, DIM)
    assert set(mixture.unique().tolist()) == {0.0, 2.0}
    assert 0.25 < (mixture == 0).float().mean() < 0.75
    assert (mixture == mixture[:, :1]).all()
    assert (encoded != 0).all()
    mixture = model.eval()._encode(batch(5))[:, :, model.encoder.output_dim :]
    assert (mixture == 1).all()
