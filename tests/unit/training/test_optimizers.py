"""Optimizers by name."""

import pytest
import torch

from elmokit.config import from_dict
from elmokit.errors import ConfigError
from elmokit.training import optimizers
from elmokit.training.optimizers import OPTIMIZERS, OptimizerConfig
from elmokit.training.pretraining.presets import pretrain_config
from elmokit.training.pretraining.run_config import RunConfig


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


def test_a_new_optimizer_is_a_function_and_a_line(monkeypatch):
    """Every configuration knows it at once, from recipes and from ``--set``."""

    def sgd(config, parameters):
        return torch.optim.SGD(parameters, lr=config.learning_rate)

    monkeypatch.setitem(optimizers.OPTIMIZERS, "sgd", sgd)
    config = pretrain_config("toy", overrides=["optimizer.name=sgd"])
    assert isinstance(config.optimizer.build(torch.nn.Linear(1, 1)), torch.optim.SGD)


def test_an_unknown_optimizer_is_refused_with_the_known_ones():
    with pytest.raises(ConfigError, match=r"`optimizer\.name`: .*adamw, adagrad, .*'sgd'"):
        from_dict(RunConfig, {"optimizer": {"name": "sgd"}})
