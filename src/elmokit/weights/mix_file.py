"""Trained mixtures of layers in a file: what a task learns of ELMo in addition to its own weights.

A safetensors file with ``mix_weights`` (M, L), before the softmax, and ``gammas`` (M,) of M
mixtures of L layers. Its metadata hold the kind of layer norm.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast, get_args

import numpy as np
from safetensors.numpy import save_file

from elmokit.bilm.config import NORM_EPSILON, LayerNorm
from elmokit.errors import FormatError
from elmokit.files.atomic import StrPath, atomic_file
from elmokit.shapes import Float
from elmokit.weights.arrays import read_all

_ADVICE = "`elmokit convert` writes such a file with the model, if there are trained mixtures."
_NORM = "layer_norm"


def mix_shares(mix_weights: Float[np.ndarray, " L"]) -> Float[np.ndarray, " L"]:
    """Return the share of each layer: the softmax of its learned weights."""
    powers = np.exp(mix_weights - mix_weights.max())
    return powers / powers.sum()


@dataclass(frozen=True, kw_only=True)
class TrainedMixes:
    """Weights of M mixtures of L layers."""

    mix_weights: Float[np.ndarray, "M L"]
    """Before the softmax."""
    gammas: Float[np.ndarray, " M"]
    """The scale of each."""
    layer_norm: LayerNorm = "none"
    """Normalization before mixing."""

    @classmethod
    def of(cls, mixes: Any) -> "TrainedMixes":
        """Return the mixtures of all layers that an `ELMo` or `LayerMixes` has learned."""
        if mixes.layers not in ("mix", "average"):
            raise ValueError(f"`layers` is {mixes.layers!r}; only mixtures of all layers are kept.")
        learned = [mix for mix in mixes.scalar_mixes if hasattr(mix, "mix_weights")]
        return cls(
            mix_weights=np.stack([mix.mix_weights.detach().cpu().numpy() for mix in learned]),
            gammas=np.stack([mix.gamma.detach().cpu().numpy() for mix in learned]),
            layer_norm=learned[0].layer_norm,
        )

    @property
    def num_layers(self) -> int:
        """L, the token layer included."""
        return self.mix_weights.shape[1]

    def mix(self, index: int, layers: Float[np.ndarray, "L P E2"]) -> Float[np.ndarray, "P E2"]:
        """Return mixture number ``index`` of the layers at P positions: a `ScalarMix` in NumPy.

        The positions are all that a batch-wide norm counts.
        """
        if self.layer_norm != "none":
            axes = 2 if self.layer_norm == "token" else (1, 2)
            centered = layers - layers.mean(axis=axes, keepdims=True)
            variance = np.square(centered).mean(axis=axes, keepdims=True)
            layers = centered / np.sqrt(variance + np.float32(NORM_EPSILON))
        shares = self.gammas[index] * mix_shares(self.mix_weights[index])
        mixed = shares[0] * layers[0]
        for share, layer in zip(shares[1:], layers[1:], strict=True):
            mixed += share * layer
        return mixed


def write_mixes(mixes: TrainedMixes, path: StrPath) -> None:
    """Write the file."""
    arrays = {
        name: np.ascontiguousarray(getattr(mixes, name), dtype=np.float32)
        for name in ("mix_weights", "gammas")
    }
    with atomic_file(path) as temp_path:
        save_file(arrays, temp_path, metadata={"format": "pt", _NORM: mixes.layer_norm})


def read_mixes(path: StrPath) -> TrainedMixes:
    """Read a file of mixtures."""
    source = Path(path)
    arrays, metadata = read_all(source, advice=_ADVICE)
    norm = metadata.get(_NORM)
    weights, gammas = (arrays.get(name, np.zeros(())) for name in ("mix_weights", "gammas"))
    has_shapes = weights.ndim == 2 and gammas.shape == weights.shape[:1]
    if not has_shapes or norm not in get_args(LayerNorm):
        shapes = {name: array.shape for name, array in arrays.items()}
        raise FormatError(
            f"{source}: expected `mix_weights` (M, L), `gammas` (M,), and one of "
            f"{', '.join(get_args(LayerNorm))} as `{_NORM}`, got {shapes} and {norm!r}. {_ADVICE}"
        )
    return TrainedMixes(
        mix_weights=weights.astype(np.float32), gammas=gammas.astype(np.float32),
        layer_norm=cast(LayerNorm, norm),
    )  # fmt: skip
