"""The C kernels of inference as functions of tensors: `linear`, `char_cnn`, `lstm`.

Matrices are packed once (`pack_matrix`) for the vector length of this processor. Every function
gives a row the same bits whatever stands beside it and however many threads work.
"""

import ctypes
from collections.abc import Sequence
from ctypes import POINTER, Structure, byref, c_float, c_int64, c_void_p
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from elmokit.native.build import load_library

Kind = Literal["fp32", "bf16", "int8"]
"""How a packed matrix holds its values."""

_TYPES: dict[str, int] = {"fp32": 0, "bf16": 1, "int8": 2}
_GROUP: dict[str, int] = {"fp32": 1, "bf16": 2, "int8": 4}
_VECTORS = 4  # NV of product.h


class _Matrix(Structure):
    _fields_ = (
        ("type", c_int64), ("num_panels", c_int64), ("num_groups", c_int64),
        ("values", c_void_p), ("scale", c_void_p), ("offset", c_void_p),
    )  # fmt: skip


class _Linear(Structure):
    _fields_ = (
        ("m", _Matrix), ("x", c_void_p), ("bias", c_void_p), ("out", c_void_p),
        ("rows", c_int64), ("inner", c_int64), ("x_stride", c_int64), ("columns", c_int64),
        ("out_stride", c_int64), ("is_highway", c_int64), ("groups", c_void_p),
        ("scales", c_void_p),
    )  # fmt: skip


class _Convolution(Structure):
    _fields_ = (
        ("m", _Matrix), ("width", c_int64), ("count", c_int64), ("first", c_int64),
        ("bias", c_void_p), ("padding", c_void_p),
    )  # fmt: skip


class _CharCNN(Structure):
    _fields_ = (
        ("convolutions", POINTER(_Convolution)), ("num_convolutions", c_int64),
        ("num_words", c_int64), ("max_characters", c_int64), ("embedding_dim", c_int64),
        ("out_stride", c_int64), ("is_tanh", c_int64), ("type", c_int64),
        ("embedding", c_void_p), ("char_ids", c_void_p), ("lengths", c_void_p), ("out", c_void_p),
        ("buffers", c_void_p),
    )  # fmt: skip


class _LSTM(Structure):
    _fields_ = (
        ("recurrent", _Matrix), ("projection", _Matrix), ("num_steps", c_int64), ("dim", c_int64),
        ("cell_dim", c_int64), ("num_rows", c_void_p), ("gates_in", c_void_p),
        ("gates_row", c_void_p), ("residual", c_void_p), ("hidden", c_void_p), ("cell", c_void_p),
        ("out", c_void_p), ("hidden_groups", c_void_p), ("inner_groups", c_void_p),
        ("inner", c_void_p), ("hidden_scales", c_void_p), ("inner_scales", c_void_p),
        ("cell_clip", c_float), ("projection_clip", c_float),
    )  # fmt: skip


class Kernels:
    """The loaded library."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        library.elmokit_vector_length.restype = c_int64
        library.elmokit_instructions.restype = c_int64
        for name in ("elmokit_linear", "elmokit_char_cnn", "elmokit_lstm"):
            getattr(library, name).argtypes = (c_void_p, c_int64)
            getattr(library, name).restype = None
        self.vector_length: int = library.elmokit_vector_length()
        instructions = library.elmokit_instructions()
        self.quick_kinds = {"fp32"} | {
            kind for kind in ("bf16", "int8") if instructions >> _TYPES[kind] & 1
        }
        """Kinds that this processor multiplies with instructions of their own."""

    def call(self, name: str, arguments: Structure) -> None:
        """Run a kernel on as many threads as PyTorch uses."""
        getattr(self._library, name)(byref(arguments), torch.get_num_threads())


def load_kernels() -> Kernels | None:
    """Return the kernels, or none where they cannot be compiled (said in the log)."""
    library = load_library("kernels")
    return None if library is None else Kernels(library)


@dataclass(frozen=True)
class PackedMatrix:
    """A matrix (N, K) in the order in which the kernels read it.

    ``groups`` beside each other give num_groups * group >= K; the rest is zero.
    """

    kind: Kind
    values: Tensor
    """(panels, groups, 4 * VL, values of a group)."""
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

    def argument(self) -> _Matrix:
        """Return what C sees of it."""
        return _Matrix(
            _TYPES[self.kind], self.num_panels, self.num_groups, self.values.data_ptr(),
            _pointer(self.scale), _pointer(self.offset),
        )  # fmt: skip


def pack_matrix(kernels: Kernels, weight: Tensor, kind: Kind) -> PackedMatrix:
    """Pack a matrix for products ``x @ weight.T``.

    int8 keeps each row of ``weight`` (a column of the result) as whole multiples of 1/127 of its
    largest value.

    Shape: weight (N, K).
    """
    group, panel = _GROUP[kind], _VECTORS * kernels.vector_length
    rows, inner = weight.shape
    scale = offset = None
    if kind == "int8":
        largest = weight.abs().amax(dim=1).clamp(min=1e-30)
        whole = (weight * (127 / largest)[:, None]).round_()
        scale = _padded(largest / 127, panel)
        offset = _padded(128 * whole.sum(dim=1), panel)
        weight = whole
    dtype = {"fp32": torch.float32, "bf16": torch.bfloat16, "int8": torch.int8}[kind]
    padded = torch.zeros(-(-rows // panel) * panel, -(-inner // group) * group, dtype=dtype)
    padded[:rows, :inner] = weight
    values = padded.unflatten(1, (-1, group)).unflatten(0, (-1, panel)).transpose(1, 2).contiguous()
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


def _padded(values: Tensor, multiple: int) -> Tensor:
    result = torch.zeros(-(-len(values) // multiple) * multiple)
    result[: len(values)] = values
    return result


def _pointer(values: Tensor | None) -> int | None:
    return None if values is None else values.data_ptr()


def _groups_of(rows: int, matrix: PackedMatrix) -> Tensor:
    return torch.zeros(rows, matrix.num_groups, dtype=torch.int32)


class PackedLinear:
    """``x @ weight.T + bias``; or a highway layer, whose two products are one.

    Args:
        kernels: The library.
        weight: (N, K); of a highway (2, N, N): transform, carry.
        bias: (N,), or (2, N).
        kind: How the values are held.
        blocks: Blocks of rows of ``weight`` that are interleaved in panels: 4 for LSTM gates.
    """

    def __init__(
        self, kernels: Kernels, weight: Tensor, bias: Tensor, kind: Kind, *, blocks: int = 1
    ) -> None:
        self._kernels = kernels
        self.is_highway = weight.dim() == 3
        if self.is_highway:
            self.columns = weight.shape[1]
            weight, bias = (interleave(v, 2 * kernels.vector_length) for v in (weight, bias))
        elif blocks > 1:
            weight, bias = (
                interleave(v.unflatten(0, (blocks, -1)), kernels.vector_length)
                for v in (weight, bias)
            )
            self.columns = len(weight)
        else:
            self.columns = len(weight)
        self.inner = weight.shape[1]
        self.matrix = pack_matrix(kernels, weight, kind)
        self.bias = _padded(bias, _VECTORS * kernels.vector_length)

    def __call__(self, x: Tensor) -> Tensor:
        """Return the product: (R, K) -> (R, N), fp32."""
        rows = len(x)
        out = torch.empty(rows, self.columns)
        converted = self.matrix.kind != "fp32"
        groups = torch.empty(rows, self.matrix.num_groups, dtype=torch.int32) if converted else None
        scales = torch.empty(rows)
        call = _Linear(
            self.matrix.argument(), x.data_ptr(), self.bias.data_ptr(), out.data_ptr(), rows,
            self.inner, x.stride(0), self.columns, self.columns, int(self.is_highway),
            _pointer(groups), scales.data_ptr(),
        )  # fmt: skip
        self._kernels.call("elmokit_linear", call)
        return out


class PackedCharCNN:
    """Character embedding, convolutions, maximum and activation of `nn.char_cnn`.

    Args:
        kernels: The library.
        embedding: (ids, E).
        convolutions: For each width its weight (count, E, width) and bias (count,), in order.
        max_characters: C.
        activation: ``"relu"`` or ``"tanh"``.
        padding_id: The padding character.
        kind: How the values are held; int8 and odd E use a wider one.
    """

    def __init__(
        self,
        kernels: Kernels,
        embedding: Tensor,
        convolutions: Sequence[tuple[Tensor, Tensor]],
        *,
        max_characters: int,
        activation: str,
        padding_id: int,
        kind: Kind,
    ) -> None:
        self._kernels = kernels
        self._kind: Kind = "fp32" if kind == "fp32" or embedding.shape[1] % 2 else "bf16"
        dtype = torch.float32 if self._kind == "fp32" else torch.bfloat16
        self._embedding = embedding.to(dtype).contiguous()
        self._max_characters = max_characters
        self._is_tanh = activation == "tanh"
        self.num_filters = sum(len(bias) for _, bias in convolutions)
        self._kept: list[Any] = []  # what the C structs point to
        structs, first = [], 0
        for weight, bias in convolutions:
            count, _, width = weight.shape
            matrix = pack_matrix(kernels, weight.transpose(1, 2).flatten(1), self._kind)
            padded_bias = _padded(bias, _VECTORS * kernels.vector_length)
            window = self._embedding[padding_id].repeat(width)[None].float()
            zero = torch.zeros(matrix.num_panels * _VECTORS * kernels.vector_length)
            answer = _matrix_product(kernels, matrix, window, zero)[0]
            structs.append(
                _Convolution(
                    matrix.argument(), width, count, first, padded_bias.data_ptr(),
                    answer.data_ptr(),
                )
            )  # fmt: skip
            self._kept += [matrix, padded_bias, answer]
            first += count
        self._structs = (_Convolution * len(structs))(*structs)

    def __call__(self, char_ids: np.ndarray, lengths: np.ndarray) -> Tensor:
        """Return the activated maxima.

        Shape: uint16 (U, C), int32 (U,) characters before the padding -> (U, F).
        """
        group = _GROUP[self._kind]
        row = 16 * self._max_characters * self._embedding.shape[1] // group
        out = torch.empty(len(char_ids), self.num_filters)
        buffers = torch.empty(torch.get_num_threads() * row, dtype=torch.int32)
        ids = np.ascontiguousarray(char_ids, dtype=np.uint16)
        counts = np.ascontiguousarray(lengths, dtype=np.int32)
        call = _CharCNN(
            self._structs, len(self._structs), len(ids), self._max_characters,
            self._embedding.shape[1], self.num_filters, int(self._is_tanh), _TYPES[self._kind],
            self._embedding.data_ptr(), ids.ctypes.data, counts.ctypes.data, out.data_ptr(),
            buffers.data_ptr(),
        )  # fmt: skip
        self._kernels.call("elmokit_char_cnn", call)
        return out


def _matrix_product(kernels: Kernels, matrix: PackedMatrix, x: Tensor, bias: Tensor) -> Tensor:
    """Return ``x @ matrix.T + bias`` with all columns of the panels."""
    linear = PackedLinear.__new__(PackedLinear)
    linear._kernels, linear.is_highway = kernels, False
    linear.columns, linear.inner = len(bias), x.shape[1]
    linear.matrix, linear.bias = matrix, bias
    return linear(x)


class PackedLSTM:
    """One layer and direction of `nn.lstmp.LSTMP` over packed steps.

    Args:
        kernels: The library.
        weights: The layer's input, recurrent, bias (forget offset added) and projection weights;
            the last is none where D equals H.
        cell_clip: Bound on the cell; none: no clipping.
        projection_clip: Bound on the projected output; none: no clipping.
        kind: How the values are held.
    """

    def __init__(
        self,
        kernels: Kernels,
        weights: tuple[Tensor, Tensor, Tensor, Tensor | None],
        *,
        cell_clip: float | None,
        projection_clip: float | None,
        kind: Kind,
    ) -> None:
        input_weight, recurrent_weight, bias, projection_weight = weights
        self._kernels, self._kind = kernels, kind
        length = kernels.vector_length
        self.input = PackedLinear(kernels, input_weight, bias, kind, blocks=4)
        gates = interleave(recurrent_weight.unflatten(0, (4, -1)), length)
        self._recurrent = pack_matrix(kernels, gates, kind)
        self.cell_dim = len(bias) // 4
        self.padded_cell_dim = len(gates) // 4
        self._projection = None
        if projection_weight is not None:
            wide = torch.zeros(len(projection_weight), self.padded_cell_dim)
            wide[:, : self.cell_dim] = projection_weight
            self._projection = pack_matrix(kernels, wide, kind)
        self.dim = recurrent_weight.shape[1]
        self._clips = (cell_clip or 0.0, projection_clip or 0.0)

    def __call__(
        self,
        gates_in: Tensor,
        num_rows: np.ndarray,
        hidden: Tensor,
        cell: Tensor,
        *,
        gates_row: np.ndarray | None = None,
        residual: Tensor | None = None,
    ) -> Tensor:
        """Advance ``hidden`` and ``cell`` in place; return the outputs plus ``residual``.

        Args:
            gates_in: What ``self.input`` makes of the inputs (R, 4 * padded H).
            num_rows: int64, running rows of each step, never rising; their sum is P.
            hidden: (B, D), contiguous.
            cell: (B, padded H), contiguous.
            gates_row: int64 (P,) row of ``gates_in`` for each position; none: the P-th.
            residual: (P, D), contiguous, added to the outputs; or none.

        Returns:
            (P, D).
        """
        rows = len(hidden)
        out = torch.empty(int(num_rows.sum()), self.dim)
        hidden_groups = _groups_of(rows, self._recurrent)
        inner = inner_groups = None
        if self._projection is None or self._kind == "int8":
            inner = torch.empty(rows, self.padded_cell_dim)
        if self._projection is not None:
            inner_groups = _groups_of(rows, self._projection)
        scales = torch.empty(2, rows)
        none = _Matrix(_TYPES[self._kind], 0, 0, None, None, None)
        call = _LSTM(
            self._recurrent.argument(), self._projection.argument() if self._projection else none,
            len(num_rows), self.dim, self.padded_cell_dim, num_rows.ctypes.data,
            gates_in.data_ptr(), None if gates_row is None else gates_row.ctypes.data,
            _pointer(residual), hidden.data_ptr(), cell.data_ptr(), out.data_ptr(),
            hidden_groups.data_ptr(), _pointer(inner_groups), _pointer(inner),
            scales[0].data_ptr(), scales[1].data_ptr(), *self._clips,
        )  # fmt: skip
        self._kernels.call("elmokit_lstm", call)
        return out
