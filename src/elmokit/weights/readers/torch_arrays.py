"""Tensors of AllenNLP's ELMo as arrays of the original's layout; ELMoForManyLangs took them over.

AllenNLP's gates are in our order; the forget gate's 1 is inside the bias; a highway's two matrices
are one, and its gate has the other sign; the character embedding has a row for padding.
Source: AllenNLP's ``elmo.py``, ``elmo_lstm.py``, ``highway.py``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from elmokit.bilm.config import FORGET_OFFSET, MAX_LAYERS
from elmokit.errors import FormatError
from elmokit.files.bounded import check_growth
from elmokit.weights.arrays import check_finite
from elmokit.weights.bilm_tf_layout import swap_gates


@dataclass(frozen=True)
class Names:
    """What the parts of a biLM are called; ``{}`` stands for a number."""

    filters: str
    highways: str
    projection: str
    lstm: str
    """Prefix of the layers ``forward_layer_{}`` and ``backward_layer_{}``."""


class TorchArrays:
    """An `ArraySource` of the tensors below a prefix of a state dict.

    `take` takes tensors out, `add` gives arrays the original's names, and `add_bilm` does so with
    all that are left of a biLM but its embeddings.
    """

    def __init__(self, state: Mapping[str, Tensor], prefix: str, path: Path) -> None:
        self.path, self.prefix = path, prefix
        self._arrays: dict[str, np.ndarray] = {}
        self._left = {
            name.removeprefix(prefix): tensor
            for name, tensor in state.items()
            if name.startswith(prefix)
        }
        storages = (tensor.untyped_storage() for tensor in state.values())
        # tensors may be views of one storage, which counts once
        self.num_bytes = sum({part.data_ptr(): part.nbytes() for part in storages}.values())
        self._num_taken = 0

    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {name: array.shape for name, array in self._arrays.items()}

    def dataset(self, name: str) -> np.ndarray | None:
        return self._arrays.get(name)

    def read(self, dataset: np.ndarray) -> np.ndarray:
        return dataset

    def count(self, pattern: str) -> int:
        """Return how many names there are of a pattern with ``{}`` for 0, 1, 2, …."""
        number = 0
        while number <= MAX_LAYERS and pattern.format(number) in self._left:
            number += 1
        return number

    def take(self, name: str, rank: int) -> np.ndarray:
        """Take out a tensor of so many dimensions, as fp32; together they stay in bounds."""
        tensor = self._left.pop(name, None)
        if tensor is None or tensor.dim() != rank or tensor.numel() == 0:
            shape = "is missing" if tensor is None else f"has shape {tuple(tensor.shape)}"
            raise FormatError(
                f"{self.path}: tensor `{self.prefix}{name}` {shape}; expected {rank} dimension(s)."
            )
        # a view can state any shape by steps of 0, without data for it
        self._num_taken += 4 * tensor.numel()
        check_growth(self.path, self._num_taken, self.num_bytes)
        array = tensor.detach().to(torch.float32).contiguous().numpy()
        check_finite(array, self.prefix + name, self.path)
        return array

    def add(self, name: str, array: np.ndarray) -> None:
        self._arrays[name] = array

    def add_bilm(self, names: Names) -> None:
        """Add character CNN and LSTMs, and refuse tensors that have no place in them."""
        for i in range(self.count(f"{names.filters}.weight")):
            kernel = self.take(f"{names.filters.format(i)}.weight", 3)  # (out, in, width)
            self.add(f"CNN/W_cnn_{i}", kernel.transpose(2, 1, 0)[np.newaxis])
            self.add(f"CNN/b_cnn_{i}", self.take(f"{names.filters.format(i)}.bias", 1))
        for k in range(self.count(f"{names.highways}.weight")):
            for part, letter, rank in (("weight", "W", 2), ("bias", "b", 1)):
                both = self.take(f"{names.highways.format(k)}.{part}", rank)
                transform, keep = np.array_split(both, 2)
                # their gate is the share that is kept: 1 - sigmoid(x) = sigmoid(-x)
                self.add(f"CNN_high_{k}/{letter}_transform", transform.T)
                self.add(f"CNN_high_{k}/{letter}_carry", -keep.T)
        self.add("CNN_proj/W_proj", self.take(f"{names.projection}.weight", 2).T)
        self.add("CNN_proj/b_proj", self.take(f"{names.projection}.bias", 1))
        for number, direction in enumerate(("forward", "backward")):
            layers = f"{names.lstm}{direction}_layer_{{}}."
            for layer in range(max(1, self.count(f"{layers}state_projection.weight"))):
                ours = f"RNN_{number}/RNN/MultiRNNCell/Cell{layer}/LSTMCell/"
                self._add_lstm(layers.format(layer), ours)
        if self._left:
            raise FormatError(
                f"{self.path}: tensor `{self.prefix}{min(self._left)}` has no place in the biLM "
                "that the other tensors describe."
            )

    def _add_lstm(self, theirs: str, ours: str) -> None:
        inputs = self.take(f"{theirs}input_linearity.weight", 2)
        recurrent = self.take(f"{theirs}state_linearity.weight", 2)
        bias = self.take(f"{theirs}state_linearity.bias", 1)
        if len({len(inputs), len(recurrent), len(bias)}) > 1 or len(bias) % 4:
            raise FormatError(
                f"{self.path}: the tensors `{self.prefix}{theirs}*_linearity.*` do not belong "
                "together: they must have four rows for each cell."
            )
        bias = bias.copy()
        bias[len(bias) // 4 : len(bias) // 2] -= np.float32(FORGET_OFFSET)
        self.add(f"{ours}W_0", swap_gates(np.concatenate((inputs.T, recurrent.T)), axis=1))
        self.add(f"{ours}B", swap_gates(bias))
        self.add(f"{ours}W_P_0", self.take(f"{theirs}state_projection.weight", 2).T)
