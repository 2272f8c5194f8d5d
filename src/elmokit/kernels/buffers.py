"""Memory that the kernels read and write, on the CPU, whatever PyTorch's defaults are.

Tensors for values, and matrices in the layout of the kernels: panels of columns, in which every
group holds 32 bits of K.
"""

from ctypes import Structure
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from elmokit.kernels.library import DTYPES, Kind, Library, group_size

MAX_INT8_INNER = (2**31 - 1) // (255 * 127)
"""Largest K of an int8 matrix: sums of products of bytes (0 to 255, -127 to 127) fit 32 bits."""


def fp32_empty(*shape: int) -> Tensor:
    """Return a tensor without values."""
    return torch.empty(*shape, dtype=torch.float32, device="cpu")


def fp32_zeros(*shape: int) -> Tensor:
    """Return a tensor of zeros."""
    return torch.zeros(*shape, dtype=torch.float32, device="cpu")


def int32_empty(*shape: int) -> Tensor:
    """Return a tensor without values."""
    return torch.empty(*shape, dtype=torch.int32, device="cpu")


def empty(*shape: int, dtype: type = np.float32) -> Tensor:
    """Return an uninitialized tensor in NumPy memory, which uses huge pages unlike PyTorch's."""
    return torch.from_numpy(np.empty(shape, dtype=dtype))


@dataclass(frozen=True)
class PackedMatrix:
    """A matrix (N, K) in the layout of the kernels, padded with zeros."""

    kind: Kind
    values: Tensor
    """int32 (panels, groups, panel width): each holds 32 bits of K."""
    scale: Tensor | None = None
    offset: Tensor | None = None

    @property
    def num_groups(self) -> int:
        """32-bit groups of K."""
        return self.values.shape[1]

    def argument(self, kernels: Library) -> Structure:
        """Return the C structure."""
        return kernels.structure(
            "matrix", type=kernels.types[DTYPES[self.kind]], num_panels=self.values.shape[0],
            num_groups=self.num_groups, values=self.values, scale=self.scale, offset=self.offset,
        )  # fmt: skip


def pack_matrix(kernels: Library, weight: Tensor, kind: Kind) -> PackedMatrix:
    """Pack a matrix for products ``x @ weight.T``.

    int8 stores each row of ``weight`` as multiples of 1/127 of its largest absolute value. A row
    with a non-finite value gives NaN.

    Shape: weight (N, K).

    Raises:
        ValueError: if the sums of int8 products could exceed 32 bits.
    """
    group, panel, dtype = group_size(kind), kernels.panel_width, DTYPES[kind]
    rows, inner = weight.shape
    if kind == "int8" and inner > MAX_INT8_INNER:
        raise ValueError(
            f"int8 products sum up to {MAX_INT8_INNER:,} values, got a matrix of shape "
            f"({rows:,}, {inner:,}). Use precision bf16 or fp32."
        )
    scale = offset = None
    if kind == "int8":
        # The processor multiplies unsigned by signed bytes: rows of x are shifted by 128, and what
        # that adds to a product, 128 times the sum of the weights, is taken off again.
        largest = weight.abs().amax(dim=1).clamp(min=1e-30)
        is_finite = largest.isfinite()
        whole = (weight * (127 / largest)[:, None]).round_()
        weight = whole.where(is_finite[:, None], 0)
        scale = padded((largest / 127).where(is_finite, torch.nan), panel)
        offset = padded(128 * weight.sum(dim=1), panel).to(torch.int32)
    whole = torch.zeros(
        -(-rows // panel) * panel, -(-inner // group) * group, dtype=dtype, device="cpu"
    )
    whole[:rows, :inner] = weight
    # One load of the kernel gets the same 32 bits of K of all columns of a panel.
    ordered = whole.unflatten(1, (-1, group)).unflatten(0, (-1, panel)).transpose(1, 2)
    num_panels, num_groups = ordered.shape[:2]
    values = empty(num_panels, num_groups, panel, dtype=np.int32)
    values.view(dtype).view(ordered.shape).copy_(ordered)
    return PackedMatrix(kind, values, scale, offset)


def interleave(blocks: Tensor, width: int) -> Tensor:
    """Interleave blocks in pieces of ``width`` rows, padded with zeros.

    Shape: (blocks, N, …) -> (pieces * blocks * width, …).
    """
    count, rows = blocks.shape[:2]
    pieces = -(-rows // width)
    padded = blocks.new_zeros(count, pieces * width, *blocks.shape[2:])
    padded[:, :rows] = blocks
    return padded.unflatten(1, (pieces, width)).transpose(0, 1).flatten(0, 2)


def padded(values: Tensor, multiple: int) -> Tensor:
    """Pad a vector with zeros to a multiple of a length."""
    result = fp32_zeros(-(-len(values) // multiple) * multiple)
    result[: len(values)] = values
    return result
