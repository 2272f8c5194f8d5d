"""Optimizers by name: a new one is a function here and a line in `OPTIMIZERS`."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn


@dataclass(frozen=True, kw_only=True)
class OptimizerConfig:
    """Optimizer, learning rate, clipping."""

    name: str = "adamw"
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
        for name in ("learning_rate", "loss_scale", "clip_norm"):
            value = getattr(self, name)
            if value is not None and not value > 0:  # nor NaN
                raise ValueError(f"`{name}` must be positive, got {value}")
        if not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"`betas` must be at least 0 and below 1, got {self.betas}")
        for name in ("weight_decay", "initial_accumulator"):
            value = getattr(self, name)
            if not value >= 0:
                raise ValueError(f"`{name}` must not be negative, got {value}")

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
