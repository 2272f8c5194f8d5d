"""The task-specific mixtures of biLM layers."""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from elmokit.bilm.config import NORM_EPSILON, LayerChoice, LayerNorm
from elmokit.errors import check_choice
from elmokit.shapes import Bool, Float


class ScalarMix(nn.Module):
    """Blend the biLM layers into one vector per position.

    Computes ``gamma * sum_l softmax(mix_weights)[l] * layers[l]``. ``gamma`` starts at 1 and
    ``mix_weights`` at ``initial_weights`` or zeros, a plain average. ``gamma`` is always learned,
    ``mix_weights`` if ``trainable``. ``layer_norm``: True means ``token``.

    Shape: layers (L, B, T, 2D), mask (B, T) -> (B, T, 2D).
    Source: Peters et al. 2018, section 3.2, equation 1.

    Raises:
        InputError: for an unknown ``layer_norm``.
        ValueError: if there are not L initial weights, or a batch-wide norm gets no mask.
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
        initial = [0.0] * num_layers if initial_weights is None else list(initial_weights)
        values = torch.tensor(initial)
        if len(values) != num_layers:
            raise ValueError(f"`initial_weights` must hold {num_layers} values, got {len(values)}.")
        if isinstance(layer_norm, bool):
            layer_norm = "token" if layer_norm else "none"
        self.layer_norm: LayerNorm = check_choice(layer_norm, LayerNorm, name="layer_norm")
        self.mix_weights = nn.Parameter(values.float(), requires_grad=trainable)
        self.gamma = nn.Parameter(torch.ones(()))

    def forward(
        self, layers: Float[Tensor, "L B T E2"], mask: Bool[Tensor, "B T"] | None = None
    ) -> Float[Tensor, "B T E2"]:
        """Return the mixture; ``mask`` selects the positions that batch-wide norms count."""
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


class LayerMixes(nn.Module):
    """Learned mixtures of biLM layers that are given: the part of ELMo that a task trains.

    Args:
        num_layers: L of the biLM, the token layer included.
        num_mixes: Separate mixtures, one for each place where the task model reads ELMo.
        layers: The layers of each.
        dropout: Of each.
        layer_norm: Normalization before mixing; True means ``token``.
        l2: λ of `penalty`.

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
        wanted = {"top": layers[-1:], "layer0": layers[:1]}.get(self.layers, layers)
        return self.scalar_mixes[index](wanted, mask)

    @torch.no_grad()
    def scale_to(self, rms: float, samples: Iterable[tuple[Tensor, Tensor]]) -> None:
        """Set every gamma so that its mixture of ``samples`` has this root mean square.

        ``samples`` holds layers with their mask; without a real position nothing changes.
        """
        samples = list(samples)
        for index, mix in enumerate(self.scalar_mixes if samples else ()):
            assert isinstance(mix, ScalarMix)
            real = torch.cat([self._mixed(index, layers, mask)[mask] for layers, mask in samples])
            current_rms = real.square().mean().sqrt()
            if real.numel() and current_rms > 0:
                mix.gamma.mul_(rms / current_rms)

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
