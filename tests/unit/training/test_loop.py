"""The training loop: budgets, limits and the rate as a share of them, and when it stops."""

import copy
import itertools

import pytest
import torch

from elmokit.training.loop import StepResult, train
from elmokit.training.optimizers import OptimizerConfig
from elmokit.training.schedules import Budget, Limits, Progress, ScheduleConfig

CONFIG = OptimizerConfig(name="adagrad", learning_rate=0.1)
SCHEDULE = ScheduleConfig(warmup_share=0.5, final_factor=0.0)


def run(module, batch):
    """Return the reports of eight updates, all on one batch."""

    def objective(batch, carry, step):
        return StepResult(module(batch).square().mean(), {}, len(batch), carry)

    return list(train(
        objective, itertools.repeat(batch), CONFIG.build(module), carry=0, config=CONFIG,
        budget=Budget(steps=8), schedule=SCHEDULE,
    ))  # fmt: skip


def test_the_learning_rate_follows_the_schedule_until_the_budget_is_spent():
    reports = run(torch.nn.Linear(2, 1), torch.ones(4, 2))
    assert [report.progress.step for report in reports] == list(range(1, 9))
    assert [report.progress.tokens for report in reports] == list(range(4, 36, 4))
    expected = [0.1 * SCHEDULE.factor(step / 8) for step in range(8)]
    assert [report.learning_rate for report in reports] == pytest.approx(expected)


def test_a_loss_that_is_not_finite_stops_before_the_update():
    module = torch.nn.Linear(2, 1)
    start = copy.deepcopy(module.state_dict())
    message = r"step 1 .*nan.*optimizer\.learning_rate"
    with pytest.raises(FloatingPointError, match=message):
        run(module, torch.full((4, 2), float("nan")))
    for name, value in module.state_dict().items():
        assert torch.equal(value, start[name]), name


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"steps": 10}, 0.5),
        ({"tokens": 400}, 0.25),
        ({"seconds": 20.0}, 0.15),
        ({"steps": 10, "tokens": 400, "seconds": 20.0}, 0.5),
        ({"steps": 10, "seconds": 3.0}, 1.0),
        ({"tokens": 50}, 1.0),
    ],
)
def test_the_first_limit_that_is_reached_counts(limits, expected):
    progress = Progress(step=5, tokens=100, seconds=3.0)
    assert Budget(**limits).share(progress) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"epochs": 2}, {"steps": 31}),  # whole updates
        ({}, {"steps": 62}),
        ({"minutes": 2}, {"seconds": 120.0}),
        ({"minutes": 1, "epochs": 0.5, "tokens": 300},
         {"seconds": 60.0, "tokens": 300, "steps": 7}),
        ({"epochs": 2, "tokens": 3000}, {"steps": 31, "tokens": 3000}),
    ],
)  # fmt: skip
def test_limits_become_a_budget(limits, expected):
    corpus = {"targets_per_epoch": 1000, "targets_per_step": 64, "default_epochs": 4.0}
    assert Limits(**limits).budget(**corpus) == Budget(**expected)


@pytest.mark.parametrize(
    ("settings", "factors"),
    [
        ({"kind": "constant", "warmup_share": 0.1}, {0.05: 0.5, 0.1: 1.0, 1.0: 1.0}),
        ({"kind": "cosine", "warmup_share": 0.2}, {0.1: 0.5, 0.2: 1.0, 0.6: 0.55, 1.0: 0.1}),
        ({"kind": "linear", "warmup_share": 0.2}, {0.1: 0.5, 0.2: 1.0, 0.6: 0.55, 1.0: 0.1}),
        ({"kind": "wsd", "warmup_share": 0.1, "decay_share": 0.3},
         {0.0: 1e-3, 0.05: 0.5, 0.1: 1.0, 0.7: 1.0, 0.85: 0.55, 1.0: 0.1}),
    ],
)  # fmt: skip
def test_the_rate_warms_up_and_falls_to_its_final_factor(settings, factors):
    schedule = ScheduleConfig(**settings, final_factor=0.1)
    found = {share: schedule.factor(share) for share in factors}
    assert found == pytest.approx(factors)
