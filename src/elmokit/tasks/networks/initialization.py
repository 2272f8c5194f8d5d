"""Fresh weights of the task networks."""

from collections.abc import Iterable

import torch
from torch import nn


def draw_weights(modules: Iterable[nn.Module], generator: torch.Generator) -> None:
    """Draw linear layers (Glorot uniform, zero biases); call ``reset_parameters`` of others."""
    for module in modules:
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight, generator=generator)
            nn.init.zeros_(module.bias)
        else:
            module.reset_parameters(generator)  # pyright: ignore[reportCallIssue]
