"""Tensors that the kernels of training read and write, whatever PyTorch's defaults are."""

import torch
from torch import Tensor

from elmokit.kernels.packed_matrix import PackedMatrix as PackedMatrix


def fp32_empty(*shape: int) -> Tensor:
    """Return a tensor without values."""
    return torch.empty(*shape, dtype=torch.float32, device="cpu")


def fp32_zeros(*shape: int) -> Tensor:
    """Return a tensor of zeros."""
    return torch.zeros(*shape, dtype=torch.float32, device="cpu")


def int32_empty(*shape: int) -> Tensor:
    """Return a tensor without values."""
    return torch.empty(*shape, dtype=torch.int32, device="cpu")
