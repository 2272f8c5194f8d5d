"""The training loop: a generator that makes one update and yields one report of it at a time.

Its caller logs, saves and stops. The ``carry`` (an LSTM's state) is an argument and a result.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from elmokit.training.distributed import World
from elmokit.training.optimizers import OptimizerConfig
from elmokit.training.schedules import Budget, Progress, ScheduleConfig

Batch = TypeVar("Batch")
Carry = TypeVar("Carry")


@dataclass(frozen=True)
class StepResult(Generic[Carry]):
    """What an objective returns for one batch."""

    loss: Tensor
    """Mean loss, with its graph."""
    parts: dict[str, Tensor]
    num_tokens: int
    carry: Carry


@dataclass(frozen=True)
class StepReport(Generic[Carry]):
    progress: Progress
    """After the update."""
    loss: float
    """Mean over all processes, before the update."""
    parts: dict[str, float]
    learning_rate: float
    gradient_norm: float
    share: float
    carry: Carry


def train(
    objective: Callable[[Batch, Carry, int], StepResult[Carry]],
    batches: Iterator[Batch],
    optimizer: torch.optim.Optimizer,
    *,
    carry: Carry,
    budget: Budget,
    schedule: ScheduleConfig,
    config: OptimizerConfig,
    until: float = 1.0,
    progress: Progress = Progress(),  # noqa: B008 (frozen)
    started: float | None = None,
    world: World = World(),  # noqa: B008 (frozen)
    autocast: Callable[[], AbstractContextManager[Any]] = nullcontext,
) -> Iterator[StepReport[Carry]]:
    """Update until a share of the budget is spent or the batches end.

    ``objective`` takes (batch, carry, step). ``until`` is the share of the budget at which to stop,
    ``started`` the `time.monotonic` at second 0 of the run. `FloatingPointError` if the loss is not
    finite; the parameters then keep their values.
    """
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    started = time.monotonic() - progress.seconds if started is None else started
    while (share := agreed_share(budget, progress, world)) < until:
        batch = next(batches, None)
        if batch is None:
            return
        rate = config.learning_rate * schedule.factor(share)
        for group in optimizer.param_groups:
            group["lr"] = rate * group.get("rate_share", 1.0)
        optimizer.zero_grad(set_to_none=True)
        with autocast():
            result = objective(batch, carry, progress.step)
        (result.loss * config.loss_scale).backward()
        limit = float("inf") if config.clip_norm is None else config.clip_norm
        norm = float(torch.nn.utils.clip_grad_norm_(parameters, limit))
        # one exchange between processes for all figures
        names = sorted(result.parts)
        figures = [result.loss.detach(), *(result.parts[name] for name in names)]
        loss, *parts = world.mean(torch.stack(figures).double()).tolist()
        # a NaN is not below infinity either
        if not (loss < float("inf") and norm < float("inf")):
            raise FloatingPointError(
                f"The loss is not finite at step {progress.step + 1} (loss {loss}, gradient norm "
                f"{norm}). Lower the learning rate (optimizer.learning_rate; of a task "
                "train.learning_rate, or train.clip_norm)."
            )
        optimizer.step()
        carry = result.carry
        tokens = progress.tokens + result.num_tokens * world.size
        progress = Progress(progress.step + 1, tokens, time.monotonic() - started)
        named_parts = dict(zip(names, parts, strict=True))
        yield StepReport(progress, loss, named_parts, rate, norm, budget.share(progress), carry)


def agreed_share(budget: Budget, progress: Progress, world: World) -> float:
    """Return the share of the budget that is spent, by the clock of rank 0."""
    share = budget.share(progress)
    if not budget.uses_clock:
        return share
    return float(world.from_main(torch.tensor(share, dtype=torch.float64, device=world.device)))


def derived_seed(*parts: int) -> int:
    """Hash integers into one 63-bit seed (the finalizer of splitmix64 over each part)."""
    mixed = 0x9E3779B97F4A7C15
    for part in parts:
        mixed = (mixed ^ part) * 0xBF58476D1CE4E5B9 % 2**64
        mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB % 2**64
        mixed ^= mixed >> 31
    return mixed >> 1
