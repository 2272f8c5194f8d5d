"""Matrices in the layout of the kernels: panels of columns, where a group holds 32 bits of K."""

from ctypes import Structure
from dataclasses import dataclass
from typing import Any

import numpy as np

from elmokit.kernels.library import Library, MatrixKind, group_size
from elmokit.shapes import Float, UInt16

MAX_INT8_INNER = (2**31 - 1) // (255 * 127)
"""Largest K of an int8 matrix: sums of products of bytes (0 to 255, -127 to 127) fit 32 bits."""
CACHE_LINE_BYTES = 64


@dataclass(frozen=True)
class PackedMatrix:
    """A matrix (N, K) in the layout of the kernels, padded with zeros."""

    kind: MatrixKind
    values: Any
    """int32 (panels, groups, panel width): each holds 32 bits of K. NumPy's, or PyTorch's."""
    scale: np.ndarray | None = None
    offset: np.ndarray | None = None

    @property
    def num_groups(self) -> int:
        return self.values.shape[1]

    def argument(self, kernels: Library) -> Structure:
        return kernels.structure(
            "matrix", type=kernels.type_of(self.kind), num_panels=self.values.shape[0],
            num_groups=self.num_groups, values=self.values, scale=self.scale, offset=self.offset,
        )  # fmt: skip


def pack_matrix(kernels: Library, weight: np.ndarray, kind: MatrixKind) -> PackedMatrix:
    """Pack a matrix (N, K) for products ``x @ weight.T``.

    int8 stores each row as multiples of 1/127 of its largest absolute value; a row with a
    non-finite value gives NaN.
    """
    group, panel = group_size(kind), kernels.panel_width
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
        largest = np.maximum(np.abs(weight).max(axis=1, initial=0), np.float32(1e-30))
        is_finite = np.isfinite(largest)
        with np.errstate(invalid="ignore", over="ignore"):
            steps = np.rint(weight * (np.float32(127) / largest)[:, None])
        weight = np.where(is_finite[:, None], steps, 0).astype(np.int8)
        scale = padded(np.where(is_finite, largest / np.float32(127), np.nan), panel)
        offset = padded(128 * weight.sum(axis=1, dtype=np.int32), panel, dtype=np.int32)
    elif kind == "bf16":
        weight = to_bf16(weight)
    whole = np.ascontiguousarray(weight)
    missing = (-rows % panel, -inner % group)
    if any(missing):
        whole = np.pad(weight, [(0, count) for count in missing])
    # One load of the kernel gets the same 32 bits of K of all columns of a panel.
    groups = whole.view(np.int32).reshape(-1, panel, whole.shape[1] // group)
    return PackedMatrix(kind, _on_cache_lines(groups.transpose(0, 2, 1)), scale, offset)


def _on_cache_lines(values: np.ndarray) -> np.ndarray:
    """Copy into memory that begins at a cache line: a vector across two lines takes two loads."""
    memory = np.empty(values.nbytes + CACHE_LINE_BYTES, np.uint8)
    start = -memory.ctypes.data % CACHE_LINE_BYTES
    copy = memory[start : start + values.nbytes].view(values.dtype).reshape(values.shape)
    copy[...] = values
    return copy


def to_bf16(values: Float[np.ndarray, "..."]) -> UInt16[np.ndarray, "..."]:
    """Return the nearest bfloat16 numbers, ties to even, as their bits."""
    # 0x7FFF plus the last kept bit carries into it from just above the half, or to even
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    rounded = (bits + (0x7FFF + ((bits >> 16) & 1))) >> 16
    return np.where(np.isnan(values), 0x7FC0, rounded).astype(np.uint16)


def from_bf16(bits: UInt16[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """Return the numbers of which bfloat16 keeps the upper half."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def interleave(blocks: np.ndarray, width: int) -> np.ndarray:
    """Interleave blocks in pieces of ``width`` rows, padded with zeros.

    Shape: (blocks, N, …) -> (pieces * blocks * width, …).
    """
    count, rows, *rest = blocks.shape
    pieces = -(-rows // width)
    whole = blocks
    if missing := pieces * width - rows:
        whole = np.pad(blocks, [(0, 0), (0, missing), *[(0, 0) for _ in rest]])
    return whole.reshape(count, pieces, width, *rest).swapaxes(0, 1).reshape(-1, *rest)


def padded(values: np.ndarray, multiple: int, *, dtype: type = np.float32) -> np.ndarray:
    """Pad a vector with zeros to a multiple of a length."""
    whole = np.zeros(-(-len(values) // multiple) * multiple, dtype)
    whole[: len(values)] = values
    return whole
