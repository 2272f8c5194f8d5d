"""The training loop: what it updates, carries, reports, and when it stops."""

import copy

import pytest
import torch

from elmokit.training.loop import StepResult, train
from elmokit.training.optimizers import OptimizerConfig
from elmokit.training.schedules import Budget, ScheduleConfig

CONSTANT = ScheduleConfig(kind="constant", warmup_share=0.0)
SGD_LIKE = OptimizerConfig(name="adagrad", learning_rate=0.1, initial_accumulator=1.0)


@pytest.fixture
def module():
    module = torch.nn.Linear(2, 1)
    with torch.no_grad():
        module.weight.copy_(torch.tensor([[1.0, -2.0]]))
        module.bias.fill_(0.5)
    return module


def objective_of(module):
    """A mean square over the batch; the carry counts batches."""

    def objective(batch, carry, step):
        loss = module(batch).square().mean()
        return StepResult(loss, {"twice": 2 * loss.detach()}, len(batch), carry + 1)

    return objective


def batches():
    generator = torch.Generator().manual_seed(0)
    while True:
        yield torch.randn(4, 2, generator=generator)


def run(module, *, source=None, **settings):
    """All reports of a run of three updates, unless ``settings`` say otherwise."""
    defaults = {"budget": Budget(steps=3), "schedule": CONSTANT}
    arguments = {"carry": 0, "config": SGD_LIKE} | defaults | settings
    optimizer = SGD_LIKE.build(module)
    return list(train(objective_of(module), source or batches(), optimizer, **arguments))


def test_a_loss_that_is_not_finite_stops_before_the_update(module):
    start = copy.deepcopy(module.state_dict())
    poisoned = iter([torch.full((4, 2), float("nan"))])
    message = r"step 1 .*nan.*optimizer\.learning_rate"
    with pytest.raises(FloatingPointError, match=message):
        run(module, source=poisoned)
    for name, value in module.state_dict().items():
        assert torch.equal(value, start[name]), name


def test_the_learning_rate_follows_the_schedule(module):
    schedule = ScheduleConfig(warmup_share=0.5, final_factor=0.0)
    reports = run(module, schedule=schedule, budget=Budget(steps=8))
    expected = [0.1 * schedule.factor(step / 8) for step in range(8)]
    assert [report.learning_rate for report in reports] == pytest.approx(expected)
