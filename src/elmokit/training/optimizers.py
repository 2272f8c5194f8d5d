"""Optimizers by name, and an average of the weights over the last updates.

A new optimizer is a function here and a line in `OPTIMIZERS`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

from elmokit.errors import Bounds, CheckedFields, Positive
from elmokit.jobs.identity import FIXED

Parameters = Mapping[str, nn.Parameter]
NotNegative = Annotated[float, Bounds(0.0, 1e300)]
MUON_MOMENTUM, NEWTON_STEPS = 0.95, 5
NEWTON = (3.4445, -4.7750, 2.0315)
"""Of x, x³ and x⁵: they carry singular values towards 1 soonest (Jordan et al. 2024)."""
MAX_MUON_DIM = 1024
"""Muon leaves matrices to AdamW whose smaller side is longer: its time grows with the cube."""
UPDATES_TOGETHER = 8  # between two steps of the average: nearly the same, at an eighth of the cost


@dataclass(frozen=True, kw_only=True)
class OptimizerConfig(CheckedFields):
    """Optimizer, learning rate, clipping."""

    name: str = field(default="adamw", metadata=FIXED)
    """One of `OPTIMIZERS`; the original's is ``adagrad`` with the values noted below. ``muon``
    orthogonalizes the updates of the matrices; embeddings, output layer, biases and matrices of
    more than 1,024 rows and columns (wide highways) get AdamW's."""
    learning_rate: Positive = 2e-3
    """Peak rate (original: 0.2)."""
    betas: tuple[float, float] = (0.9, 0.999)
    """AdamW's decay of the two moments. The second needs a long memory: a rare word is a negative
    of the sampled softmax far more often than a target. With a short memory (0.98) each negative
    moves the word's row as far as a target does."""
    weight_decay: NotNegative = 0.0
    """Decay of matrices an update, times the rate; ``muon``: only where it orthogonalizes."""
    initial_accumulator: NotNegative = 1.0
    """Adagrad's initial sum of squares (original: 1)."""
    clip_norm: Positive | None = 1.0
    """Bound on the global norm of the gradient (original: 10); none: no clipping."""
    loss_scale: Positive = 1.0
    """Factor on the mean loss before back-propagation; matters to Adagrad (original: T)."""

    def __post_init__(self) -> None:
        if self.name not in OPTIMIZERS:
            raise ValueError(f"`name` must be one of {', '.join(OPTIMIZERS)}, got {self.name!r}")
        super().__post_init__()
        if not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"`betas` must be at least 0 and below 1, got {self.betas}")

    def build(self, module: nn.Module) -> torch.optim.Optimizer:
        parameters = {name: p for name, p in module.named_parameters() if p.requires_grad}
        return OPTIMIZERS[self.name](self, parameters)


def adamw(config: OptimizerConfig, named: Parameters) -> torch.optim.Optimizer:
    matrices = [p for p in named.values() if p.dim() > 1]
    vectors = [p for p in named.values() if p.dim() <= 1]  # biases do not decay
    decays = ((matrices, config.weight_decay), (vectors, 0.0))
    groups = [{"params": group, "weight_decay": decay} for group, decay in decays if group]
    return torch.optim.AdamW(groups, lr=config.learning_rate, betas=config.betas, fused=True)


def adagrad(config: OptimizerConfig, named: Parameters) -> torch.optim.Optimizer:
    return torch.optim.Adagrad(
        named.values(),
        lr=config.learning_rate,
        initial_accumulator_value=config.initial_accumulator,
        eps=1e-10,
        fused=all(parameter.device.type == "cpu" for parameter in named.values()),
    )


def muon(config: OptimizerConfig, named: Parameters) -> torch.optim.Optimizer:
    """Build Muon for most matrices between embeddings and output layer, AdamW for the rest.

    Source: Jordan et al. 2024; scaled as in Liu et al. 2025, so that AdamW's rates fit.
    """
    inner = [  # a list: the order of a set differs between processes, and states are saved by it
        name
        for name, parameter in named.items()
        if parameter.dim() == 2
        and min(parameter.shape) <= MAX_MUON_DIM
        and not any(word in name for word in ("embedding", "softmax"))
    ]
    others = [parameter for name, parameter in named.items() if name not in inner]
    decay = config.weight_decay
    groups = [
        {"params": others, "weight_decay": 0.0},
        {"params": [named[name] for name in inner], "weight_decay": decay, "is_muon": True},
    ]
    groups = [group for group in groups if group["params"]]
    return Muon(groups, lr=config.learning_rate, betas=config.betas, fused=True)


class Muon(torch.optim.AdamW):
    """AdamW, but parameters of groups with ``is_muon`` move along their orthogonalized momentum.

    They keep the momentum as ``exp_avg``.
    """

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        assert closure is None, "gradients are computed before the step"
        groups = [group for group in self.param_groups if group.get("is_muon")]
        gradients = [(group, p, p.grad) for group in groups for p in group["params"]]
        for _, parameter, _ in gradients:  # AdamW passes over what has none
            parameter.grad = None
        super().step()
        for group, parameter, gradient in gradients:
            parameter.grad = gradient
            if gradient is None:
                continue
            state = self.state[parameter]
            if not state:  # with AdamW's entries, so that checkpoints tell whole states from others
                unused = {name: torch.zeros(()) for name in ("step", "exp_avg_sq")}
                state.update(exp_avg=torch.zeros_like(parameter), **unused)
            momentum = state["exp_avg"].mul_(MUON_MOMENTUM).add_(gradient)
            update = orthogonalized(gradient.add(momentum, alpha=MUON_MOMENTUM))
            scale = 0.2 * max(parameter.shape) ** 0.5  # the usual size of AdamW's updates
            parameter.mul_(1 - group["lr"] * group["weight_decay"])
            parameter.add_(update, alpha=-group["lr"] * scale)


def orthogonalized(matrix: Tensor) -> Tensor:
    """Return about the nearest matrix with orthonormal rows or columns, by Newton's iteration."""
    tall = matrix if matrix.shape[0] >= matrix.shape[1] else matrix.mT
    tall = tall / (tall.norm() + 1e-7)
    gram = tall.mT @ tall
    step = product = _newton_step(gram)
    for _ in range(NEWTON_STEPS - 1):
        gram = step @ gram @ step
        step = _newton_step(gram)
        product = product @ step
    result = tall @ product
    return result if matrix.shape[0] >= matrix.shape[1] else result.mT


def _newton_step(gram: Tensor) -> Tensor:
    a, b, c = NEWTON
    step = torch.addmm(gram, gram, gram, beta=b, alpha=c)
    step.diagonal().add_(a)
    return step


OPTIMIZERS: dict[str, Callable[[OptimizerConfig, Parameters], torch.optim.Optimizer]] = {
    "adamw": adamw,
    "adagrad": adagrad,
    "muon": muon,
}
"""(config, trainable parameters by name) -> optimizer."""


class WeightAverage:
    """Exponential moving average of a model's weights, begun with the first weights it sees.

    After n updates the decay is ``min(decay, (1 + n) / (10 + n))``.

    Source: Polyak and Juditsky 1992; the growing decay is TensorFlow's
        ``ExponentialMovingAverage(num_updates=...)``.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        @torch.no_grad()
        def lerp(averages: Any, weights: Any, num_averaged: Any) -> None:
            num_updates = int(num_averaged) * UPDATES_TOGETHER
            # Short at first, because the first weights say little about the last ones.
            decay_now = min(decay, (1 + num_updates) / (10 + num_updates)) ** UPDATES_TOGETHER
            torch._foreach_lerp_(averages, weights, 1 - decay_now)  # pyright: ignore[reportPrivateImportUsage]

        self._average = AveragedModel(model, multi_avg_fn=lerp).requires_grad_(False)
        self._average.eval()

    @property
    def model(self) -> Any:
        return self._average.module

    def update(self, model: nn.Module, step: int) -> None:
        """Add the weights after update number ``step``, if it is their turn."""
        if step % UPDATES_TOGETHER == 0 or not self._average.n_averaged:
            self._average.update_parameters(model)

    def state_dict(self) -> dict[str, Tensor]:
        return self._average.state_dict()

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        self._average.load_state_dict(state)

    def restart(self, model: nn.Module) -> None:
        """Start from the weights of ``model``, for a run that kept no average so far."""
        self._average.module.load_state_dict(model.state_dict())
