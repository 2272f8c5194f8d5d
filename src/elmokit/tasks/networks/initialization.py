"""Fresh weights of the task networks."""

from collections.abc import Iterable

import torch
from torch import nn


def draw_weights(modules: Iterable[nn.Module], generator: torch.Generator) -> None:
    """Draw fresh weights, module by module.

    Linear layers get Glorot uniform weights and zero biases; other modules have a
    ``reset_parameters(generator)`` of their own.
    """
    for module in modules:
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight, generator=generator)
            nn.init.zeros_(module.bias)
        else:
            module.reset_parameters(generator)  # pyright: ignore[reportCallIssue]
