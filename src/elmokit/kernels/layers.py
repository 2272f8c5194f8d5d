"""Layers with packed weights. The bits of a row depend neither on other rows nor on threads."""

import math
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from elmokit.kernels.library import Kernels, MatrixKind, get_num_threads, group_size
from elmokit.kernels.packed_matrix import (
    PackedMatrix,
    from_bf16,
    interleave,
    pack_matrix,
    padded,
    to_bf16,
)

_LOG2_E = np.float32(1 / math.log(2))
_NEVER = -1e30  # bias of padding columns of a softmax


class ScratchBuffers(threading.local):
    """Reused memory for intermediate values: fresh memory costs as much as computing."""

    def __init__(self) -> None:
        self._buffers: dict[str, np.ndarray] = {}

    def take(self, name: str, *shape: int) -> np.ndarray:
        """Return an fp32 buffer, which the next `take` of this name in this thread overwrites."""
        count = math.prod(shape)
        buffer = self._buffers.get(name)
        if buffer is None or len(buffer) < count:
            buffer = self._buffers[name] = fp32_empty(count)
        return buffer[:count].reshape(shape)


def fp32_empty(*shape: int) -> np.ndarray:
    return np.empty(shape, np.float32)


def int32_empty(*shape: int) -> np.ndarray:
    return np.empty(shape, np.int32)


class PackedLinear:
    """``x @ weight.T + bias``, or a highway layer as one product.

    Shape: weight (N, K), bias (N,); of a highway (2, N, N), (2, N): transform, carry.
    """

    def __init__(
        self, kernels: Kernels, weight: np.ndarray, bias: np.ndarray, kind: MatrixKind
    ) -> None:
        self._kernels = kernels
        is_highway = weight.ndim == 3
        self.columns, self.inner = weight.shape[-2:]
        # A panel holds transform and carry of the same columns, so the kernel has both at hand.
        if is_highway:
            half = kernels.panel_width // 2
            weight, bias = interleave(weight, half), interleave(bias, half)
        self._matrix = pack_matrix(kernels, weight, kind)
        self._bias = padded(bias, kernels.panel_width)
        self._fixed = kernels.arguments(
            "linear", m=self._matrix.argument(kernels), bias=self._bias, inner=self.inner,
            columns=self.columns, is_highway=is_highway,
        )  # fmt: skip

    def __call__(self, x: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Compute (R, K) -> (R, N) into ``out``, and return it."""
        rows, matrix = len(x), self._matrix
        converted = matrix.kind != "fp32"
        groups = int32_empty(rows, matrix.num_groups) if converted else None
        # addresses, because rows need not be contiguous
        self._kernels.call(
            "linear", self._fixed, x=x.ctypes.data, out=out.ctypes.data, rows=rows,
            x_stride=x.strides[0] // 4, out_stride=out.strides[0] // 4, groups=groups,
            scales=fp32_empty(rows),
        )  # fmt: skip
        return out


class PackedCharCNN:
    """Character embedding, convolutions, maximum and activation of `elmokit.bilm.char_cnn`.

    The kind int8 computes in bf16; odd E, in fp32.
    Shape: embedding (ids, E); convolutions: (count, E, width) and (count,) of each width.
    """

    def __init__(
        self,
        kernels: Kernels,
        embedding: np.ndarray,
        convolutions: Sequence[tuple[np.ndarray, np.ndarray]],
        *,
        max_characters: int,
        activation: str,
        padding_id: int,
        kind: MatrixKind,
    ) -> None:
        self._kernels = kernels
        is_rounded = kind != "fp32" and embedding.shape[1] % 2 == 0
        # without instructions for bf16, multiplying its values as fp32 gives the same bits faster
        self._kind: MatrixKind = "bf16" if is_rounded and "bf16" in kernels.quick_kinds else "fp32"
        rounded = np.array(embedding, dtype=np.float32)
        if is_rounded:
            rounded = from_bf16(to_bf16(rounded))
        self._embedding = to_bf16(rounded) if self._kind == "bf16" else rounded
        self._max_characters = max_characters
        self._is_tanh = activation == "tanh"
        self.num_filters = sum(len(bias) for _, bias in convolutions)
        self._pointed: list[Any] = []  # keeps what the structures point to
        structures: list[Any] = []
        panel, first = kernels.panel_width, 0
        for weight, bias in convolutions:
            count, _, width = weight.shape
            flat = weight.swapaxes(1, 2).reshape(count, -1)  # (count, width * E)
            if is_rounded:
                flat = from_bf16(to_bf16(flat))
            matrix = pack_matrix(kernels, flat, self._kind)
            bias = padded(bias, panel)
            # All windows of padding alone have one answer, which is computed only once.
            window = np.tile(rounded[padding_id], width)
            with np.errstate(all="ignore"):  # of weights that are not finite
                answer = padded(flat @ window, panel)
            structure = kernels.structure(
                "convolution", m=matrix.argument(kernels), width=width, count=count,
                first=first, bias=bias, padding=answer,
            )  # fmt: skip
            structures.append(structure)
            self._pointed += [matrix, bias, answer]
            first += count
        self._convolutions = kernels.array(structures)

    def __call__(self, char_ids: np.ndarray, lengths: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Compute ids (U, C), unpadded lengths (U,) -> (U, F) into ``out``, and return it."""
        threads, constants = get_num_threads(), self._kernels.constants
        # every thread unfolds the embeddings of some words, as groups of 32 bits
        characters = threads * constants["WORDS_TOGETHER"] * self._max_characters
        groups = self._embedding.shape[1] // group_size(self._kind)
        ids = np.ascontiguousarray(char_ids, dtype=np.uint16)
        counts = np.ascontiguousarray(lengths, dtype=np.int32)
        self._kernels.call(
            "char_cnn", threads=threads, convolutions=self._convolutions,
            num_convolutions=len(self._convolutions), num_words=len(ids),
            max_characters=self._max_characters,
            embedding_dim=self._embedding.shape[1], out_stride=self.num_filters,
            is_tanh=self._is_tanh, type=self._kernels.type_of(self._kind),
            typed_embedding=self._embedding, char_ids=ids.ctypes.data, lengths=counts.ctypes.data,
            out=out, buffers=fp32_empty((characters + constants["TILE_ROWS"]) * groups),
        )  # fmt: skip
        return out


class PackedLSTM:
    """One layer and direction of `elmokit.bilm.lstmp.LSTMP` over packed steps.

    ``weights`` are input, recurrent, bias (with forget offset), projection (None where D = H);
    ``buffers`` may be shared with other layers.
    """

    def __init__(
        self,
        kernels: Kernels,
        weights: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None],
        config: object,
        *,
        kind: MatrixKind,
        buffers: ScratchBuffers,
    ) -> None:
        input_weight, recurrent_weight, bias, projection_weight = weights
        self._kernels, self._kind, self._buffers = kernels, kind, buffers
        self._length = kernels.vector_length
        # The four gates of a cell lie next to each other, one vector of cells at a time.
        gates = [
            interleave(values.reshape(4, -1, *values.shape[1:]), self._length)
            for values in (input_weight, recurrent_weight, bias)
        ]
        self._input = pack_matrix(kernels, gates[0], kind)
        self._recurrent = pack_matrix(kernels, gates[1], kind)
        self._bias = np.ascontiguousarray(gates[2])
        self._cell_dim, self._padded_cell_dim = len(bias) // 4, len(self._bias) // 4
        self._projection: PackedMatrix | None = None
        if projection_weight is not None:
            # Cells that only fill up a vector are zero and must stay without effect.
            missing = self._padded_cell_dim - self._cell_dim
            wide = np.pad(projection_weight, ((0, 0), (0, missing)))
            self._projection = pack_matrix(kernels, wide, kind)
        self._input_dim, self._dim = input_weight.shape[1], recurrent_weight.shape[1]
        matrices = {
            "input": self._input, "recurrent": self._recurrent, "projection": self._projection
        }  # fmt: skip
        self._fixed = kernels.arguments(
            "lstm", dim=self._dim, cell_dim=self._padded_cell_dim, input_dim=self._input_dim,
            bias=self._bias, parameters=kernels.structure_from("lstm_cell", config),
            **{name: matrix.argument(kernels) for name, matrix in matrices.items() if matrix},
        )  # fmt: skip

    def pack_cell(self, cell: np.ndarray) -> np.ndarray:
        """Copy to the kernel's layout: (B, H) -> (H / VL, B, VL)."""
        padding = self._padded_cell_dim - self._cell_dim
        wide = np.pad(cell, ((0, 0), (0, padding))) if padding else cell
        shape = (len(cell), self._padded_cell_dim // self._length, self._length)
        pieces = wide.reshape(shape)  # (B, H / VL, VL)
        return np.ascontiguousarray(pieces.swapaxes(0, 1))

    def unpack_cell(self, cell: np.ndarray) -> np.ndarray:
        """Return the cell as (B, H)."""
        wide = cell.swapaxes(0, 1).reshape(cell.shape[1], self._padded_cell_dim)
        return wide[:, : self._cell_dim]

    def __call__(
        self,
        x: np.ndarray,
        num_rows: np.ndarray,
        hidden: np.ndarray,
        cell: np.ndarray,
        *,
        skip: bool = False,
        targets: np.ndarray | None = None,
    ) -> np.ndarray:
        """Advance ``hidden`` and ``cell`` in place over ``x`` (P, X); return the outputs (P, D).

        ``num_rows`` are the active rows of each step, never rising; their sum is P. ``skip`` adds
        ``x`` to the outputs; ``targets`` are int64 (P,) addresses to which the D values are also
        written; 0: none.
        """
        rows, positions = len(hidden), int(num_rows.sum())
        out = fp32_empty(positions, self._dim)
        most_rows = int(num_rows[0]) if len(num_rows) else 0
        # the kernel computes the input products of so many positions before their steps
        gates_rows = max(self._kernels.constants["GATE_ROWS"], most_rows)
        inner, inner_groups, inner_stride = None, None, 0
        if self._projection is None or self._kind == "int8":
            inner = fp32_empty(rows, self._padded_cell_dim)
        if self._projection is not None:
            # One extra cache line: rows at powers of two would collide in the cache.
            inner_stride = self._projection.num_groups + 16
            inner_groups = int32_empty(rows, inner_stride)
        self._kernels.call(
            "lstm", self._fixed, num_steps=len(num_rows), num_rows=num_rows.ctypes.data, x=x,
            x_groups=self._buffers.take("x", positions, self._input.num_groups),
            x_scales=fp32_empty(positions),
            gates=self._buffers.take("gates", gates_rows, len(self._bias)), gates_rows=gates_rows,
            residual=x if skip else None, num_sentences=rows, hidden=hidden, cell=cell, out=out,
            targets=None if targets is None else targets.ctypes.data,
            hidden_groups=int32_empty(rows, self._recurrent.num_groups),
            inner_groups=inner_groups, inner_stride=inner_stride, inner=inner,
            hidden_scales=fp32_empty(rows), inner_scales=fp32_empty(rows),
        )  # fmt: skip
        return out


class PackedLogSumExp:
    """``(x @ weight.T + bias).logsumexp(1)`` in one pass that stores no scores.

    Products use ``kind``; exponentials and sums are fp32, in two levels, so that the many small
    terms of a large vocabulary are not lost. Shape: weight (N, K), bias (N,).
    """

    def __init__(
        self, kernels: Kernels, weight: np.ndarray, bias: np.ndarray, kind: MatrixKind
    ) -> None:
        self._kernels = kernels
        # Powers of two are quicker than exponentials: scores are scaled here, results back.
        self._matrix = pack_matrix(kernels, weight * _LOG2_E, kind)
        self.num_columns = len(bias)
        """N."""
        self._bias = padded(bias * _LOG2_E, kernels.panel_width)
        self._bias[len(bias) :] = _NEVER

    def __call__(self, x: np.ndarray, targets: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Compute (R, K) -> (R,).

        ``targets`` (R,) take the place of the products in ``columns`` (R,), so that they are never
        above the logsumexp; column -1: none.
        """
        return self._run(x, targets, columns, {})[0]

    def with_mean_and_rank(
        self, x: np.ndarray, targets: np.ndarray, columns: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return logsumexp, mean score under the softmax, and number of scores above the target."""
        num_rows, lanes = len(x), self._kernels.vector_length
        moments, moment_totals = (np.zeros((num_rows, lanes), np.float32) for _ in range(2))
        above = np.zeros((num_rows, lanes), np.int32)
        others = {"moments": moments, "moment_totals": moment_totals, "above": above}
        out, totals, shifts = self._run(x, targets, columns, others)
        means = (moment_totals.sum(axis=1) / totals.sum(axis=1) + shifts) / _LOG2_E
        return out, means, above.sum(axis=1)

    def _run(
        self, x: np.ndarray, targets: np.ndarray, columns: np.ndarray, others: dict[str, np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the logsumexp and the buffers ``totals`` and ``shifts`` of `logsumexp_call`."""
        num_rows, lanes = len(x), self._kernels.vector_length
        out, shifts = fp32_empty(num_rows), fp32_empty(num_rows)
        totals = fp32_empty(num_rows, lanes)
        self._kernels.call(
            "logsumexp", m=self._matrix.argument(self._kernels), x=x, bias=self._bias, out=out,
            rows=num_rows, inner=x.shape[1], scales=fp32_empty(num_rows), shifts=shifts,
            groups=int32_empty(num_rows, self._matrix.num_groups),
            sums=fp32_empty(num_rows, lanes), totals=totals, targets=targets * _LOG2_E,
            columns=columns, **others,
        )  # fmt: skip
        return out / _LOG2_E, totals, shifts
