"""Optimizers by name, and an average of the weights over the last updates.

A new optimizer is a function here and a line in `OPTIMIZERS`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

from elmokit.field_checks import check_ranges
from elmokit.jobs.identity import FIXED

POSITIVE = (1e-300, 1e300)
UPDATES_TOGETHER = 8  # between two steps of the average: nearly the same, at an eighth of the cost


@dataclass(frozen=True, kw_only=True)
class OptimizerConfig:
    """Optimizer, learning rate, clipping."""

    name: str = field(default="adamw", metadata=FIXED)
    """One of `OPTIMIZERS`; the original's is ``adagrad`` with the values noted below."""
    learning_rate: float = 2e-3
    """Peak rate (original: 0.2)."""
    betas: tuple[float, float] = (0.9, 0.999)
    """AdamW's decay of the two moments. The second needs a long memory: a rare word is a negative
    of the sampled softmax far more often than a target. With a short memory (0.98) each negative
    moves the word's row as far as a target does."""
    weight_decay: float = 0.0
    """AdamW's decay, on matrices only."""
    initial_accumulator: float = 1.0
    """Adagrad's initial sum of squares (original: 1)."""
    clip_norm: float | None = 1.0
    """Bound on the global norm of the gradient (original: 10); none: no clipping."""
    loss_scale: float = 1.0
    """Factor on the mean loss before back-propagation; matters to Adagrad (original: T)."""

    def __post_init__(self) -> None:
        if self.name not in OPTIMIZERS:
            raise ValueError(f"`name` must be one of {', '.join(OPTIMIZERS)}, got {self.name!r}")
        check_ranges(
            self, learning_rate=POSITIVE, loss_scale=POSITIVE, clip_norm=POSITIVE,
            weight_decay=(0.0, 1e300), initial_accumulator=(0.0, 1e300),
        )  # fmt: skip
        if not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"`betas` must be at least 0 and below 1, got {self.betas}")

    def build(self, module: nn.Module) -> torch.optim.Optimizer:
        """Return the optimizer over the module's trainable parameters."""
        parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
        return OPTIMIZERS[self.name](self, parameters)


def adamw(config: OptimizerConfig, parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
    """Build AdamW; vectors (biases) do not decay."""
    groups = [
        {"params": [p for p in parameters if p.dim() > 1], "weight_decay": config.weight_decay},
        {"params": [p for p in parameters if p.dim() <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(
        [group for group in groups if group["params"]],
        lr=config.learning_rate,
        betas=config.betas,
        fused=True,
    )


def adagrad(config: OptimizerConfig, parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
    """Build Adagrad, as the original used it."""
    return torch.optim.Adagrad(
        parameters,
        lr=config.learning_rate,
        initial_accumulator_value=config.initial_accumulator,
        eps=1e-10,
        fused=all(parameter.device.type == "cpu" for parameter in parameters),
    )


OPTIMIZERS: dict[str, Callable[[OptimizerConfig, list[nn.Parameter]], torch.optim.Optimizer]] = {
    "adamw": adamw,
    "adagrad": adagrad,
}
"""(config, trainable parameters) -> optimizer."""


class WeightAverage:
    """Exponential moving average of a model's weights, begun with the first weights it sees.

    After n updates the decay is ``min(decay, (1 + n) / (10 + n))``.

    Source: Polyak and Juditsky 1992; the growing decay is TensorFlow's
        ``ExponentialMovingAverage(num_updates=...)``.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self._average = AveragedModel(model, multi_avg_fn=_lerp(decay)).requires_grad_(False)
        self._average.eval()

    @property
    def model(self) -> Any:
        """A copy of the model with the averaged weights."""
        return self._average.module

    def update(self, model: nn.Module, step: int) -> None:
        """Add the weights after update number ``step``, if it is their turn."""
        if step % UPDATES_TOGETHER == 0 or not self._average.n_averaged:
            self._average.update_parameters(model)

    def state_dict(self) -> dict[str, Tensor]:
        """Return the tensors that a checkpoint stores."""
        return self._average.state_dict()

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Continue from what `state_dict` returned."""
        self._average.load_state_dict(state)

    def restart(self, model: nn.Module) -> None:
        """Start from the weights of ``model``, for a run that kept no average so far."""
        self._average.module.load_state_dict(model.state_dict())


def _lerp(decay: float) -> Callable[[Any, Any, Any], None]:
    @torch.no_grad()
    def update(averages: list[Tensor], weights: list[Tensor], num_averaged: Tensor | int) -> None:
        num_updates = int(num_averaged) * UPDATES_TOGETHER
        # Short at first, because the first weights say little about the last ones.
        decay_now = min(decay, (1 + num_updates) / (10 + num_updates)) ** UPDATES_TOGETHER
        torch._foreach_lerp_(averages, weights, 1 - decay_now)  # pyright: ignore[reportPrivateImportUsage]

    return update
