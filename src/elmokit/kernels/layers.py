"""Layers with packed weights. The bits of a row depend neither on other rows nor on threads."""

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from elmokit.kernels.buffers import fp32_empty, int32_empty
from elmokit.kernels.inference import Kernels
from elmokit.kernels.library import DTYPES, Kind, group_size
from elmokit.kernels.matrices import PackedMatrix, empty, interleave, pack_matrix, padded


class ScratchBuffers(threading.local):
    """Reused memory for intermediate values: fresh memory costs as much as computing.

    A `take` invalidates what the last `take` of the same name in the same thread returned.
    """

    def __init__(self) -> None:
        self._kept: dict[str, Tensor] = {}

    def take(self, name: str, *shape: int) -> Tensor:
        """Return an uninitialized fp32 buffer."""
        count = int(np.prod(shape))
        kept = self._kept.get(name)
        if kept is None or len(kept) < count:
            kept = self._kept[name] = empty(count)
        return kept[:count].view(shape)


class PackedLinear:
    """``x @ weight.T + bias``, or a highway layer as one product.

    Shape: weight (N, K), bias (N,); of a highway (2, N, N), (2, N): transform, carry.
    """

    def __init__(self, kernels: Kernels, weight: Tensor, bias: Tensor, kind: Kind) -> None:
        self._kernels = kernels
        is_highway = weight.dim() == 3
        self.columns, self.inner = weight.shape[-2:]
        if is_highway:
            half = kernels.panel_width // 2
            weight, bias = interleave(weight, half), interleave(bias, half)
        self._matrix = pack_matrix(kernels, weight, kind)
        self._bias = padded(bias, kernels.panel_width)
        self._fixed = kernels.arguments(
            "linear", m=self._matrix.argument(kernels), bias=self._bias, inner=self.inner,
            columns=self.columns, is_highway=is_highway,
        )  # fmt: skip

    def __call__(self, x: Tensor, out: Tensor) -> Tensor:
        """Compute (R, K) -> (R, N) into ``out``, and return it."""
        rows, matrix = len(x), self._matrix
        converted = matrix.kind != "fp32"
        groups = int32_empty(rows, matrix.num_groups) if converted else None
        self._kernels.call(  # addresses, because rows need not be contiguous
            "linear", self._fixed, x=x.data_ptr(), out=out.data_ptr(), rows=rows,
            x_stride=x.stride(0), out_stride=out.stride(0), groups=groups,
            scales=fp32_empty(rows),
        )  # fmt: skip
        return out


class PackedCharCNN:
    """Character embedding, convolutions, maximum and activation of `elmokit.bilm.char_cnn`.

    ``activation`` is ``"relu"`` or ``"tanh"``. The kind int8 computes in bf16; odd E, in fp32.
    Shape: embedding (ids, E); convolutions: (count, E, width) and (count,) of each width.
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
        dtype = DTYPES[self._kind]
        self._embedding = embedding.to(dtype).contiguous()
        self._max_characters = max_characters
        self._is_tanh = activation == "tanh"
        self.num_filters = sum(len(bias) for _, bias in convolutions)
        self._kept: list[Any] = []  # targets of pointers in the structures
        structures: list[Any] = []
        panel, first = kernels.panel_width, 0
        for weight, bias in convolutions:
            count, _, width = weight.shape
            flat = weight.transpose(1, 2).flatten(1)  # (count, width * E)
            matrix = pack_matrix(kernels, flat, self._kind)
            bias = padded(bias, panel)
            window = self._embedding[padding_id].repeat(width).float()
            answer = padded(flat.to(dtype).float() @ window, panel)
            one = kernels.structure(
                "convolution", m=matrix.argument(kernels), width=width, count=count,
                first=first, bias=bias, padding=answer,
            )  # fmt: skip
            structures.append(one)
            self._kept += [matrix, bias, answer]
            first += count
        self._convolutions = kernels.array(structures)

    def __call__(self, char_ids: np.ndarray, lengths: np.ndarray, out: Tensor) -> Tensor:
        """Compute ids (U, C), unpadded lengths (U,) -> (U, F) into ``out``, and return it."""
        threads, constants = torch.get_num_threads(), self._kernels.constants
        characters = threads * constants["WORDS_TOGETHER"] * self._max_characters
        groups = self._embedding.shape[1] // group_size(self._kind)
        ids = np.ascontiguousarray(char_ids, dtype=np.uint16)
        counts = np.ascontiguousarray(lengths, dtype=np.int32)
        self._kernels.call(
            "char_cnn", convolutions=self._convolutions, num_convolutions=len(self._convolutions),
            num_words=len(ids), max_characters=self._max_characters,
            embedding_dim=self._embedding.shape[1], out_stride=self.num_filters,
            is_tanh=self._is_tanh, type=self._kernels.types[DTYPES[self._kind]],
            typed_embedding=self._embedding, char_ids=ids.ctypes.data, lengths=counts.ctypes.data,
            out=out, buffers=fp32_empty((characters + constants["TILE_ROWS"]) * groups),
        )  # fmt: skip
        return out


class PackedLSTM:
    """One layer and direction of `elmokit.bilm.lstmp.LSTMP` over packed steps.

    Args:
        kernels: The library.
        weights: Input, recurrent, bias (with forget offset), projection (None where D = H).
        config: `LSTMConfig` with the fields of the C structure ``lstm_cell``.
        kind: Type of the packed weights.
        buffers: May be shared with other layers.
    """

    def __init__(
        self,
        kernels: Kernels,
        weights: tuple[Tensor, Tensor, Tensor, Tensor | None],
        config: object,
        *,
        kind: Kind,
        buffers: ScratchBuffers,
    ) -> None:
        input_weight, recurrent_weight, bias, projection_weight = weights
        self._kernels, self._kind, self._buffers = kernels, kind, buffers
        self._length = kernels.vector_length
        gates = [
            interleave(values.unflatten(0, (4, -1)), self._length)
            for values in (input_weight, recurrent_weight, bias)
        ]
        self._input = pack_matrix(kernels, gates[0], kind)
        self._recurrent = pack_matrix(kernels, gates[1], kind)
        self._bias = gates[2].contiguous()
        self._cell_dim, self._padded_cell_dim = len(bias) // 4, len(self._bias) // 4
        self._projection: PackedMatrix | None = None
        if projection_weight is not None:
            missing = self._padded_cell_dim - self._cell_dim
            wide = functional.pad(projection_weight, (0, missing))
            self._projection = pack_matrix(kernels, wide, kind)
        self._input_dim, self._dim = input_weight.shape[1], recurrent_weight.shape[1]
        matrices = {
            "input": self._input, "recurrent": self._recurrent, "projection": self._projection
        }  # fmt: skip
        self._fixed = kernels.arguments(
            "lstm", dim=self._dim, cell_dim=self._padded_cell_dim, input_dim=self._input_dim,
            bias=self._bias, parameters=kernels.structure_from("lstm_cell", config),
            **{name: one.argument(kernels) for name, one in matrices.items() if one is not None},
        )  # fmt: skip

    def pack_cell(self, cell: Tensor) -> Tensor:
        """Copy to the kernel's layout: (B, H) -> (H / VL, B, VL)."""
        wide = functional.pad(cell, (0, self._padded_cell_dim - self._cell_dim))
        return wide.unflatten(1, (-1, self._length)).transpose(0, 1).contiguous()

    def unpack_cell(self, cell: Tensor) -> Tensor:
        """Return the cell as (B, H)."""
        return cell.transpose(0, 1).flatten(1)[:, : self._cell_dim]

    def __call__(
        self,
        x: Tensor,
        num_rows: np.ndarray,
        hidden: Tensor,
        cell: Tensor,
        *,
        skip: bool = False,
        targets: np.ndarray | None = None,
    ) -> Tensor:
        """Advance ``hidden`` and ``cell`` in place; return the outputs (P, D).

        Args:
            x: (P, input dim), contiguous.
            num_rows: int64, active rows of each step, never rising; their sum is P.
            hidden: (B, D), contiguous.
            cell: From `pack_cell`.
            skip: Add ``x``, of width D, to the outputs.
            targets: int64 (P,) addresses to which the D values are also written; 0: none.
        """
        rows, positions = len(hidden), int(num_rows.sum())
        out = fp32_empty(positions, self._dim)
        most_rows = int(num_rows[0]) if len(num_rows) else 0
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
