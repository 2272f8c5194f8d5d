"""The one loop for everything that learns: a generator of one report per update.

The loop knows nothing of files, logs or progress bars: its caller reads the reports, logs, saves
and stops. What must go on from update to update (the LSTM memory of a language model) is the
``carry``, which goes in and comes out.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

import torch
from torch import Tensor, nn

from elmokit.training.distributed import World
from elmokit.training.schedules import Budget, Progress, ScheduleConfig

Batch = TypeVar("Batch")
Carry = TypeVar("Carry")


@dataclass(frozen=True, kw_only=True)
class OptimizerConfig:
    """How parameters are updated."""

    name: Literal["adamw", "adagrad"] = "adamw"
    """``adagrad`` with the defaults noted at each field is the original's."""
    learning_rate: float = 2e-3
    """Peak rate (original: 0.2)."""
    betas: tuple[float, float] = (0.9, 0.999)
    """AdamW's decay of the two moments. The second needs a long memory: a rare word is a target
    once in hundreds of steps and a negative of the sampled softmax far more often. With a short
    memory (0.98) the target is forgotten before the next, and each negative then moves the word's
    row as far as a target does."""
    weight_decay: float = 0.0
    """AdamW's decay, on matrices only."""
    initial_accumulator: float = 1.0
    """Adagrad's start of the sum of squares (original: 1)."""
    clip_norm: float | None = 1.0
    """Bound on the global norm of the gradient (original: 10); none: no clipping."""
    loss_scale: float = 1.0
    """Factor on the mean loss before gradients are taken; matters to Adagrad (original: T)."""

    def __post_init__(self) -> None:
        """Refuse rates that cannot work."""
        for name in ("learning_rate", "loss_scale", "clip_norm"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise ValueError(f"`{name}` must be positive, got {value}")
        if not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"`betas` must be at least 0 and below 1, got {self.betas}")
        for name in ("weight_decay", "initial_accumulator"):
            value = getattr(self, name)
            if value < 0:
                raise ValueError(f"`{name}` must not be negative, got {value}")

    def build(self, module: nn.Module) -> torch.optim.Optimizer:
        """Return the optimizer over the module's trainable parameters."""
        parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
        if self.name == "adagrad":
            return torch.optim.Adagrad(
                parameters,
                lr=self.learning_rate,
                initial_accumulator_value=self.initial_accumulator,
                eps=1e-10,
                fused=all(parameter.device.type == "cpu" for parameter in parameters),
            )
        groups = [
            {"params": [p for p in parameters if p.dim() > 1], "weight_decay": self.weight_decay},
            {"params": [p for p in parameters if p.dim() <= 1], "weight_decay": 0.0},
        ]
        return torch.optim.AdamW(
            [group for group in groups if group["params"]],
            lr=self.learning_rate,
            betas=self.betas,
            fused=True,
        )


@dataclass(frozen=True)
class StepResult(Generic[Carry]):
    """What an objective returns for one batch."""

    loss: Tensor
    """Mean loss, with its graph."""
    parts: dict[str, Tensor]
    """Detached numbers to log, means as well."""
    num_tokens: int
    """Predictions of this process' batch."""
    carry: Carry


@dataclass(frozen=True)
class StepReport(Generic[Carry]):
    """One finished update."""

    progress: Progress
    """After the update."""
    loss: float
    """Mean over all processes, before the update."""
    parts: dict[str, float]
    learning_rate: float
    gradient_norm: float
    share: float
    """Of the budget spent."""
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
    progress: Progress | None = None,
    world: World | None = None,
    autocast: Callable[[], AbstractContextManager[Any]] = nullcontext,
    frozen: Callable[[float], Iterable[nn.Parameter]] | None = None,
) -> Iterator[StepReport[Carry]]:
    """Update until the budget is spent or the batches end.

    Args:
        objective: (batch, carry, step) -> loss, numbers to log and the next carry.
        batches: Of this process.
        optimizer: Over the objective's parameters; a group with a ``rate_share`` gets that share
            of the learning rate.
        carry: What goes on from update to update.
        budget: When to stop; also drives ``schedule``.
        schedule: Of the learning rate.
        config: Peak rate, clipping, loss scale.
        progress: Where a resumed run stands.
        world: The processes that train together.
        autocast: Precision of the forward pass.
        frozen: Share of the budget spent -> parameters that are not to be updated yet.

    Raises:
        FloatingPointError: if the loss is not finite; the parameters are still those before this
            update.
    """
    progress = progress or Progress()
    world = world or World()
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    started = time.monotonic() - progress.seconds
    while (share := _agreed_share(budget, progress, world)) < 1:
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
        for parameter in frozen(share) if frozen is not None else ():
            parameter.grad = None
        limit = float("inf") if config.clip_norm is None else config.clip_norm
        norm = float(torch.nn.utils.clip_grad_norm_(parameters, limit))
        names = sorted(result.parts)
        means = world.mean(
            torch.stack([result.loss.detach(), *(result.parts[name] for name in names)]).double()
        )
        loss, *parts = means.tolist()
        if not (loss < float("inf") and norm < float("inf")):
            raise FloatingPointError(
                f"The loss is not finite at step {progress.step + 1} (loss {loss}, gradient "
                f"norm {norm}). Lower optimizer.learning_rate or optimizer.clip_norm and "
                "resume from the last checkpoint."
            )
        optimizer.step()
        carry = result.carry
        progress = Progress(
            progress.step + 1,
            progress.tokens + result.num_tokens * world.size,
            time.monotonic() - started,
        )
        yield StepReport(
            progress,
            loss,
            dict(zip(names, parts, strict=True)),
            rate,
            norm,
            budget.share(progress),
            carry,
        )


def _agreed_share(budget: Budget, progress: Progress, world: World) -> float:
    """Return the share of the budget that is spent; clocks differ, so rank 0's counts."""
    share = budget.share(progress)
    if not budget.uses_clock:
        return share
    return float(world.from_main(torch.tensor(share, dtype=torch.float64, device=world.device)))
