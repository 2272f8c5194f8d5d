"""Learned mixtures of a biLM's layers."""

from collections.abc import Iterable
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from elmokit.bilm.scalar_mix import LayerNorm, ScalarMix
from elmokit.field_checks import check_choice

LayerChoice = Literal["mix", "average", "top", "layer0"]
"""The layers of a mixture.

``mix``: all, with learned weights. ``average``: all, weighted equally. ``top``: the last one.
``layer0``: the token layer. The scale gamma is always learned.
"""


class LayerMixes(nn.Module):
    """Learned mixtures of biLM layers that are given: the part of ELMo that a task trains.

    Args:
        num_layers: L of the biLM, the token layer included.
        num_mixes: Separate mixtures, one for each place where the task model reads ELMo.
        layers: The layers of each.
        dropout: Of each.
        layer_norm: Normalization before mixing; True means ``token``.
        l2: λ of `penalty`.

    Raises:
        InputError: for an unknown name of layers or norm.

    Source: Peters et al. 2018, sections 3.2 and 3.3.
    """

    def __init__(
        self,
        num_layers: int,
        *,
        num_mixes: int = 1,
        layers: LayerChoice = "mix",
        dropout: float = 0.5,
        layer_norm: bool | LayerNorm = False,
        l2: float = 1e-3,
    ) -> None:
        super().__init__()
        self.l2 = l2
        self.layers: LayerChoice = check_choice(layers, LayerChoice, name="layers")
        count = num_layers if layers in ("mix", "average") else 1
        self.scalar_mixes = nn.ModuleList(
            ScalarMix(count, layer_norm=layer_norm, trainable=layers == "mix")
            for _ in range(num_mixes)
        )
        self.dropout = nn.Dropout(dropout)

    def mix(
        self, index: int, layers: Float[Tensor, "L B T E2"], mask: Bool[Tensor, "B T"]
    ) -> Float[Tensor, "B T E2"]:
        """Return mixture number ``index`` of all the biLM's layers, with dropout in training."""
        return self.dropout(self._mixed(index, layers, mask))

    def _mixed(self, index: int, layers: Tensor, mask: Tensor) -> Tensor:
        chosen = {"top": layers[-1:], "layer0": layers[:1]}.get(self.layers, layers)
        return self.scalar_mixes[index](chosen, mask)

    @torch.no_grad()
    def scale_to(self, rms: float, samples: Iterable[tuple[Tensor, Tensor]]) -> None:
        """Set every gamma so that its mixture of ``samples`` has this root mean square.

        ``samples`` holds layers with their mask; without a real position nothing changes.
        """
        samples = list(samples)
        for index, mix in enumerate(self.scalar_mixes if samples else ()):
            assert isinstance(mix, ScalarMix)
            real = torch.cat([self._mixed(index, layers, mask)[mask] for layers, mask in samples])
            found = real.square().mean().sqrt()
            if real.numel() and found > 0:
                mix.gamma.mul_(rms / found)

    @torch.no_grad()
    def set_mixes(self, mix_weights: Float[Tensor, "M L"], gammas: Float[Tensor, " M"]) -> None:
        """Set the weights (before the softmax) and scales of all M mixtures."""
        for mix, weights, gamma in zip(self.scalar_mixes, mix_weights, gammas, strict=True):
            assert isinstance(mix, ScalarMix)
            mix.mix_weights.copy_(weights)
            mix.gamma.copy_(gamma)

    def penalty(self) -> Float[Tensor, ""]:
        """Return ``l2`` times the sum of all mixtures' squared layer weights."""
        penalties = [mix.penalty() for mix in self.scalar_mixes]  # pyright: ignore[reportCallIssue]
        return self.l2 * torch.stack(penalties).sum()
