"""Dropout of ESIM: a mixture is dropped alike at the input and at the output."""

import numpy as np
import pytest
import torch

from elmokit.tasks.classification import NliTask
from elmokit.tasks.networks.classifier import ESIM

from ....builders.task_models import full_inputs


@pytest.mark.parametrize("positions", ["output", "both"])
def test_half_of_the_output_mixture_alone_is_dropped_the_same_at_all_words(positions, build):
    torch.manual_seed(0)
    settings = full_inputs(positions=positions, dropout=0.0)
    model = build(ESIM, NliTask(), settings, labels=["yes", "no"])
    ones = np.ones((5, 3, 16), dtype=np.float32)
    batch = model.inputs.make_batch([("a", "b", "c", "d", "e")], [ones])
    encoded, mixture = model._encode(batch).tensor_split([model.encoder.output_dim], dim=2)
    assert mixture.shape == (1, 5, 16)
    assert set(mixture.unique().tolist()) == {0.0, 2.0}
    assert 0.25 < (mixture == 0).float().mean() < 0.75
    assert (mixture == mixture[:, :1]).all()
    assert (encoded != 0).all()
    mixture = model.eval()._encode(batch)[:, :, model.encoder.output_dim :]
    assert (mixture == 1).all()
