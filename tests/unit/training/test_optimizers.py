"""Optimizers by name, and the moving average of the weights."""

import pytest
import torch

from elmokit.training.optimizers import (
    OPTIMIZERS,
    UPDATES_TOGETHER,
    OptimizerConfig,
    WeightAverage,
)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_updates_every_trainable_parameter(name):
    module = torch.nn.Linear(3, 2)
    module.register_parameter("frozen", torch.nn.Parameter(torch.ones(2), requires_grad=False))
    optimizer = OptimizerConfig(name=name).build(module)
    before = {key: value.clone() for key, value in module.state_dict().items()}
    module(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    changed = {key for key, value in module.state_dict().items() if (value != before[key]).any()}
    assert changed == {"weight", "bias"}


def moved(module, generator):
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator))
    return module


def averages_of(num_updates, *, decay=0.999, pause=None):
    """The average after so many updates; a pause writes and reads its state."""
    module, generator = torch.nn.Linear(3, 2), torch.Generator().manual_seed(0)
    with torch.no_grad():
        module.weight.zero_()
        module.bias.zero_()
    average = WeightAverage(module, decay)
    history = []
    for step in range(1, num_updates + 1):
        average.update(moved(module, generator), step)
        history.append(module.weight.detach().clone())
        if step == pause:
            state = {name: value.clone() for name, value in average.state_dict().items()}
            average = WeightAverage(torch.nn.Linear(3, 2), decay)
            average.load_state_dict(state)
    return average.model.weight, history


def test_follows_its_formula():
    average, history = averages_of(4 * UPDATES_TOGETHER, decay=0.9)
    expected = history[0]
    for number in range(1, 5):
        updates = number * UPDATES_TOGETHER
        kept = min(0.9, (1 + updates) / (10 + updates)) ** UPDATES_TOGETHER
        expected = kept * expected + (1 - kept) * history[updates - 1]
    torch.testing.assert_close(average, expected)


@pytest.mark.parametrize("pause", [1, UPDATES_TOGETHER, UPDATES_TOGETHER + 3])
def test_goes_on_bit_for_bit_from_its_state(pause):
    whole, _ = averages_of(30)
    assert torch.equal(averages_of(30, pause=pause)[0], whole)
