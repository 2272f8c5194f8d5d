"""Trained mixtures of layers in a file: what a task learns of ELMo in addition to its own weights.

A safetensors file with ``mix_weights`` (M, L), before the softmax, and ``gammas`` (M,) of M
mixtures of L layers. Its metadata hold the kind of layer norm.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import cast, get_args

import torch
from jaxtyping import Float
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from elmokit.bilm.scalar_mix import LayerMixes, LayerNorm, ScalarMix
from elmokit.errors import FormatError
from elmokit.files.atomic import StrPath, atomic_file
from elmokit.weights.tensor_files import damaged_tensors, read_tensors

_ADVICE = "`elmokit convert` writes such a file with the model, if there are trained mixtures."
_NORM = "layer_norm"


@dataclass(frozen=True, kw_only=True)
class TrainedMixes:
    """Weights of M mixtures of L layers."""

    mix_weights: Float[Tensor, "M L"]
    """Before the softmax."""
    gammas: Float[Tensor, " M"]
    """The scale of each."""
    layer_norm: LayerNorm = "none"
    """Normalization before mixing."""

    @classmethod
    def of(cls, mixes: LayerMixes) -> "TrainedMixes":
        """Return the mixtures of all layers that an `ELMo` or `LayerMixes` has learned."""
        if mixes.layers not in ("mix", "average"):
            raise ValueError(f"`layers` is {mixes.layers!r}; only mixtures of all layers are kept.")
        learned = [mix for mix in mixes.scalar_mixes if isinstance(mix, ScalarMix)]
        return cls(
            mix_weights=torch.stack([mix.mix_weights.detach() for mix in learned]),
            gammas=torch.stack([mix.gamma.detach() for mix in learned]),
            layer_norm=learned[0].layer_norm,
        )

    @property
    def num_layers(self) -> int:
        """L, the token layer included."""
        return self.mix_weights.shape[1]


def write_mixes(mixes: TrainedMixes, path: StrPath) -> None:
    """Write the file, whole or not at all."""
    tensors = {
        name: getattr(mixes, name).detach().to("cpu", torch.float32).contiguous()
        for name in ("mix_weights", "gammas")
    }
    with atomic_file(path) as temp_path:
        save_file(tensors, temp_path, metadata={"format": "pt", _NORM: mixes.layer_norm})


def read_mixes(path: StrPath) -> TrainedMixes:
    """Read a file of mixtures."""
    source = Path(path)
    tensors = read_tensors(source, advice=_ADVICE)
    with damaged_tensors(source, _ADVICE), safe_open(source, framework="pt") as file:
        norm = (file.metadata() or {}).get(_NORM)
    weights, gammas = (tensors.get(name, torch.zeros(())) for name in ("mix_weights", "gammas"))
    has_shapes = weights.dim() == 2 and gammas.shape == weights.shape[:1]
    if not has_shapes or norm not in get_args(LayerNorm):
        shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
        raise FormatError(
            f"{source}: expected `mix_weights` (M, L), `gammas` (M,), and one of "
            f"{', '.join(get_args(LayerNorm))} as `{_NORM}`, got {shapes} and {norm!r}. {_ADVICE}"
        )
    return TrainedMixes(
        mix_weights=weights.float(), gammas=gammas.float(), layer_norm=cast(LayerNorm, norm)
    )
