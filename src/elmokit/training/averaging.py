"""An average of the weights over the last updates; it scores better than the last weights."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

UPDATES_TOGETHER = 8  # between two steps of the average: nearly the same, at an eighth of the cost


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
        kept = min(decay, (1 + num_updates) / (10 + num_updates)) ** UPDATES_TOGETHER
        torch._foreach_lerp_(averages, weights, 1 - kept)  # pyright: ignore[reportPrivateImportUsage]

    return update
