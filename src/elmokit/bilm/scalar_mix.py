"""The task-specific mixture of biLM layers."""

from collections.abc import Sequence
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from elmokit.field_checks import check_choice

LayerNorm = Literal["none", "token", "batch", "batch_with_boundaries"]
"""How layers are normalized before mixing, without gain or bias.

``token``: over the features of each position (the usual layer norm).
``batch``: one mean and variance per layer over all real tokens of the batch, as in bilm-tf.
``batch_with_boundaries``: the same with sentence boundaries, as in AllenNLP. The batch-wide norms
make a sentence's vectors depend on its batch; they exist for parity.
"""

NORM_EPSILON = 1e-12


class ScalarMix(nn.Module):
    """Blend the biLM layers into one vector per position.

    Computes ``gamma * sum_l softmax(mix_weights)[l] * layers[l]``. ``gamma`` starts at 1 and
    ``mix_weights`` at ``initial_weights`` or zeros, a plain average. ``gamma`` is always learned,
    ``mix_weights`` if ``trainable``. ``layer_norm``: True means ``token``.

    Shape: layers (L, B, T, 2D), mask (B, T) -> (B, T, 2D).
    Source: Peters et al. 2018, section 3.2, equation 1.

    Raises:
        ValueError: if ``layers`` does not hold L layers, or a batch-wide norm gets no mask.
    """

    def __init__(
        self,
        num_layers: int,
        *,
        layer_norm: bool | LayerNorm = False,
        initial_weights: Sequence[float] | None = None,
        trainable: bool = True,
    ) -> None:
        super().__init__()
        values = torch.zeros(num_layers)
        if initial_weights is not None:
            values = torch.tensor(list(initial_weights)).float()
        if values.shape != (num_layers,):
            raise ValueError(
                f"`initial_weights` must hold {num_layers} values, one per layer, got "
                f"{values.numel()}."
            )
        if isinstance(layer_norm, bool):
            layer_norm = "token" if layer_norm else "none"
        self.layer_norm: LayerNorm = check_choice(layer_norm, LayerNorm, name="layer_norm")
        self.mix_weights = nn.Parameter(values, requires_grad=trainable)
        self.gamma = nn.Parameter(torch.ones(()))

    def forward(
        self, layers: Float[Tensor, "L B T E2"], mask: Bool[Tensor, "B T"] | None = None
    ) -> Float[Tensor, "B T E2"]:
        """Return the mixture; ``mask`` selects the positions that batch-wide norms count."""
        if layers.shape[0] != self.mix_weights.shape[0]:
            raise ValueError(
                f"`layers` must hold {self.mix_weights.shape[0]} layers, got {layers.shape[0]}."
            )
        if self.layer_norm == "token":
            layers = functional.layer_norm(layers, layers.shape[-1:], eps=NORM_EPSILON)
        elif self.layer_norm != "none":
            if mask is None:
                raise ValueError(
                    f"layer_norm={self.layer_norm!r} needs `mask`: it only counts real positions."
                )
            layers = _normalize_over_batch(layers, mask)
        weights = torch.softmax(self.mix_weights, dim=0)
        return self.gamma * torch.tensordot(weights, layers, dims=1)

    def penalty(self) -> Float[Tensor, ""]:
        """Return ``sum_l mix_weights[l]^2``, which pulls towards the plain average."""
        return self.mix_weights.square().sum()


def _normalize_over_batch(layers: Tensor, mask: Tensor) -> Tensor:
    """Normalize each layer to mean 0 and variance 1 over the batch's real positions."""
    keep = mask.unsqueeze(0).unsqueeze(3).to(layers.dtype)  # (1, B, T, 1)
    count = (keep.sum() * layers.shape[3]).clamp(min=1)
    mean = (layers * keep).sum(dim=(1, 2, 3), keepdim=True) / count
    variance = ((layers - mean) * keep).square().sum(dim=(1, 2, 3), keepdim=True) / count
    variance = torch.where(keep.any(), variance, 1.0)  # no position at all: as they are
    return (layers - mean) / torch.sqrt(variance + NORM_EPSILON)
