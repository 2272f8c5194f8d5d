"""Packed layers that take and return PyTorch's tensors, to compare them with its modules."""

import numpy as np
import torch
from torch import Tensor

from elmokit.kernels import layers


def _arrays(values):
    """Tensors in any nesting as arrays with the same memory."""
    if isinstance(values, Tensor):
        return values.detach().numpy()
    if isinstance(values, tuple):
        return tuple(map(_arrays, values))
    if isinstance(values, list):
        return list(map(_arrays, values))
    return values


def _tensors(values):
    if isinstance(values, tuple):
        return tuple(map(_tensors, values))
    return torch.from_numpy(values) if isinstance(values, np.ndarray) else values


class _OnTensors:
    def __init__(self, *arguments, **options):
        super().__init__(*map(_arrays, arguments), **options)

    def __call__(self, *arguments, **options):
        return _tensors(super().__call__(*map(_arrays, arguments), **options))


class PackedLinear(_OnTensors, layers.PackedLinear):
    """`elmokit.kernels.layers.PackedLinear` on tensors."""


class PackedCharCNN(_OnTensors, layers.PackedCharCNN):
    """`elmokit.kernels.layers.PackedCharCNN` on tensors."""


class PackedLSTM(_OnTensors, layers.PackedLSTM):
    """`elmokit.kernels.layers.PackedLSTM` on tensors."""

    def pack_cell(self, cell):
        return _tensors(super().pack_cell(_arrays(cell)))

    def unpack_cell(self, cell):
        return _tensors(super().unpack_cell(_arrays(cell)))


class PackedLogSumExp(_OnTensors, layers.PackedLogSumExp):
    """`elmokit.kernels.layers.PackedLogSumExp` on tensors."""

    def with_mean_and_rank(self, *arguments):
        return _tensors(super().with_mean_and_rank(*map(_arrays, arguments)))
