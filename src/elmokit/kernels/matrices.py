"""Matrices in the order in which the kernels read them."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from elmokit.kernels.inference import GROUP, TYPES, VECTORS, Kernels, Kind, MatrixArgument


def pointer(values: Tensor | None) -> int | None:
    """Return where the values are, for C; none stays none."""
    return None if values is None else values.data_ptr()


def empty(*shape: int, dtype: type = np.float32) -> Tensor:
    """Return room for values; NumPy asks for large pages, which PyTorch does not."""
    return torch.from_numpy(np.empty(shape, dtype=dtype))


@dataclass(frozen=True)
class PackedMatrix:
    """A matrix (N, K) in the order in which the kernels read it.

    ``groups`` beside each other give num_groups * group >= K; the rest is zero.
    """

    kind: Kind
    values: Tensor
    """int32 (panels, groups, 4 * VL): each value holds a group."""
    scale: Tensor | None
    offset: Tensor | None

    @property
    def num_panels(self) -> int:
        """Panels of ``4 * VL`` columns of the result."""
        return self.values.shape[0]

    @property
    def num_groups(self) -> int:
        """32-bit groups of K."""
        return self.values.shape[1]

    def argument(self) -> MatrixArgument:
        """Return what C sees of it."""
        return MatrixArgument(
            TYPES[self.kind], self.num_panels, self.num_groups, self.values.data_ptr(),
            pointer(self.scale), pointer(self.offset),
        )  # fmt: skip


def pack_matrix(kernels: Kernels, weight: Tensor, kind: Kind) -> PackedMatrix:
    """Pack a matrix for products ``x @ weight.T``.

    int8 keeps each row of ``weight`` (a column of the result) as whole multiples of 1/127 of its
    largest value.

    Shape: weight (N, K).
    """
    group, panel = GROUP[kind], VECTORS * kernels.vector_length
    rows, inner = weight.shape
    scale = offset = None
    if kind == "int8":
        largest = weight.abs().amax(dim=1).clamp(min=1e-30)
        whole = (weight * (127 / largest)[:, None]).round_()
        scale = padded(largest / 127, panel)
        offset = padded(128 * whole.sum(dim=1), panel).to(torch.int32)
        weight = whole
    dtype = {"fp32": torch.float32, "bf16": torch.bfloat16, "int8": torch.int8}[kind]
    whole = torch.zeros(-(-rows // panel) * panel, -(-inner // group) * group, dtype=dtype)
    whole[:rows, :inner] = weight
    ordered = whole.unflatten(1, (-1, group)).unflatten(0, (-1, panel)).transpose(1, 2)
    num_panels, num_groups = ordered.shape[:2]
    values = empty(num_panels, num_groups, panel, dtype=np.int32)
    values.view(dtype).view(ordered.shape).copy_(ordered)
    return PackedMatrix(kind, values, scale, offset)


def interleave(blocks: Tensor, width: int) -> Tensor:
    """Put pieces of ``width`` rows of some blocks beside each other, padded with zeros.

    Shape: (blocks, N, …) -> (pieces * blocks * width, …).
    """
    count, rows = blocks.shape[:2]
    pieces = -(-rows // width)
    padded = blocks.new_zeros(count, pieces * width, *blocks.shape[2:])
    padded[:, :rows] = blocks
    return padded.unflatten(1, (pieces, width)).transpose(0, 1).flatten(0, 2)


def padded(values: Tensor, multiple: int) -> Tensor:
    """Return a vector with zeros up to a multiple of some length."""
    result = torch.zeros(-(-len(values) // multiple) * multiple)
    result[: len(values)] = values
    return result
