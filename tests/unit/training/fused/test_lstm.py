"""The training LSTM against the plain one: equal values, equal gradients."""

import pytest
import torch

from elmokit.bilm.lstmp import LSTMP, LSTMConfig
from elmokit.training.fused.lstm import run_fused

ROWS, STEPS, INPUT, CELL = 3, 5, 4, 6

CONFIGS = {
    "clips": LSTMConfig(cell_dim=CELL, projection_dim=3, cell_clip=0.5, projection_clip=0.2),
    "no clips": LSTMConfig(cell_dim=CELL, projection_dim=3, cell_clip=None, projection_clip=None),
    "no projection": LSTMConfig(cell_dim=CELL, projection_dim=CELL, cell_clip=0.5),
    "neither": LSTMConfig(cell_dim=CELL, projection_dim=CELL, cell_clip=None, projection_clip=None),
}


@pytest.fixture(params=CONFIGS.values(), ids=CONFIGS.keys())
def config(request):
    return request.param


def build(config):
    layer = LSTMP(INPUT, config).double()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.normal_(std=0.8, generator=torch.Generator().manual_seed(parameter.numel()))
    return layer


def inputs(config, *, seed=0):
    """x and the state before it, all with gradients."""
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape, scale=1.0):
        return scale * torch.randn(*shape, generator=generator, dtype=torch.float64)

    return tuple(
        tensor.requires_grad_()
        for tensor in (
            draw(ROWS, STEPS, INPUT),
            draw(ROWS, config.projection_dim, scale=0.2),
            draw(ROWS, CELL, scale=0.4),
        )
    )


def results(run, layer, config):
    """Outputs, state, and the gradients of a loss that uses each of them."""
    x, hidden, cell = inputs(config)
    outputs, (last_hidden, last_cell) = run(layer, x, (hidden, cell))
    weights = torch.linspace(-1, 1, outputs.numel(), dtype=torch.float64).view_as(outputs)
    loss = (outputs * weights).sum() + last_hidden.square().sum() + last_cell.sin().sum()
    gradients = torch.autograd.grad(loss, [x, hidden, cell, *layer.parameters()])
    return [outputs, last_hidden, last_cell, *gradients]


def plain(layer, x, state):
    return layer(x, state)


def test_values_and_gradients_equal_the_plain_layer(config):
    layer = build(config)
    for fused, expected in zip(
        results(run_fused, layer, config), results(plain, layer, config), strict=True
    ):
        torch.testing.assert_close(fused, expected, rtol=1e-12, atol=1e-12)
