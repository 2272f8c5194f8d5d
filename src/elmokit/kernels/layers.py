"""Layers whose weights are packed: `PackedLinear`, `PackedCharCNN`, `PackedLSTM`.

Every one gives a row the same bits whatever stands beside it and however many threads work.
"""

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from elmokit.kernels.inference import (
    GATE_ROWS,
    GROUP,
    TILE_ROWS,
    TYPES,
    VECTORS,
    WORDS_TOGETHER,
    CharCNNCall,
    ConvolutionArgument,
    Kernels,
    Kind,
    LinearCall,
    LSTMCall,
    MatrixArgument,
)
from elmokit.kernels.matrices import empty, interleave, pack_matrix, padded, pointer


class ScratchBuffers(threading.local):
    """Memory for intermediate values that is used again: fresh memory costs as much as computing.

    What `take` returned under a name is overwritten by the next `take` of that name in the thread.
    """

    def __init__(self) -> None:
        self._kept: dict[str, Tensor] = {}

    def take(self, name: str, *shape: int) -> Tensor:
        """Return fp32 room of some shape, its values undefined."""
        count = int(np.prod(shape))
        kept = self._kept.get(name)
        if kept is None or len(kept) < count:
            kept = self._kept[name] = empty(count)
        return kept[:count].view(shape)


class PackedLinear:
    """``x @ weight.T + bias``; or a highway layer, whose two products are one.

    Args:
        kernels: The library.
        weight: (N, K); of a highway (2, N, N): transform, carry.
        bias: (N,), or (2, N).
        kind: How the values are held.
    """

    def __init__(self, kernels: Kernels, weight: Tensor, bias: Tensor, kind: Kind) -> None:
        self._kernels = kernels
        self._is_highway = weight.dim() == 3
        self.columns, self.inner = weight.shape[-2:]
        if self._is_highway:
            half = VECTORS * kernels.vector_length // 2
            weight, bias = interleave(weight, half), interleave(bias, half)
        self.matrix = pack_matrix(kernels, weight, kind)
        self.bias = padded(bias, VECTORS * kernels.vector_length)

    def __call__(self, x: Tensor, out: Tensor) -> Tensor:
        """Compute (R, K) -> (R, N) into ``out``, and return that."""
        rows = len(x)
        converted = self.matrix.kind != "fp32"
        groups = torch.empty(rows, self.matrix.num_groups, dtype=torch.int32) if converted else None
        scales = torch.empty(rows)
        call = LinearCall(
            self.matrix.argument(), x.data_ptr(), self.bias.data_ptr(), out.data_ptr(), rows,
            self.inner, x.stride(0), self.columns, out.stride(0), int(self._is_highway),
            pointer(groups), scales.data_ptr(),
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
        self._kept: list[Any] = []  # what the structures point to
        structures, first = [], 0
        for weight, bias in convolutions:
            count, _, width = weight.shape
            flat = weight.transpose(1, 2).flatten(1)  # (count, width * E)
            matrix = pack_matrix(kernels, flat, self._kind)
            panel = VECTORS * kernels.vector_length
            bias = padded(bias, panel)
            window = self._embedding[padding_id].repeat(width).float()
            answer = padded(flat.to(dtype).float() @ window, panel)
            structures.append(
                ConvolutionArgument(
                    matrix.argument(), width, count, first, bias.data_ptr(), answer.data_ptr()
                )
            )
            self._kept += [matrix, bias, answer]
            first += count
        self._structures = (ConvolutionArgument * len(structures))(*structures)

    def __call__(self, char_ids: np.ndarray, lengths: np.ndarray, out: Tensor) -> Tensor:
        """Compute the activated maxima into ``out``, and return that.

        Shape: ids (U, C), characters before the padding (U,) -> (U, F).
        """
        characters = torch.get_num_threads() * WORDS_TOGETHER * self._max_characters + TILE_ROWS
        groups = self._embedding.shape[1] // GROUP[self._kind]
        buffers = torch.empty(characters * groups, dtype=torch.int32)
        ids = np.ascontiguousarray(char_ids, dtype=np.uint16)
        counts = np.ascontiguousarray(lengths, dtype=np.int32)
        call = CharCNNCall(
            self._structures, len(self._structures), len(ids), self._max_characters,
            self._embedding.shape[1], self.num_filters, int(self._is_tanh), TYPES[self._kind],
            self._embedding.data_ptr(), ids.ctypes.data, counts.ctypes.data, out.data_ptr(),
            buffers.data_ptr(),
        )  # fmt: skip
        self._kernels.call("elmokit_char_cnn", call)
        return out


class PackedLSTM:
    """One layer and direction of `nn.lstmp.LSTMP` over packed steps.

    Args:
        kernels: The library.
        weights: The layer's input, recurrent, bias (forget offset added) and projection weights;
            the last is none where D equals H.
        cell_clip: Bound on the cell; none: no clipping.
        projection_clip: Bound on the projected output; none: no clipping.
        kind: How the values are held.
        room: For intermediate values; may be shared with other layers.
    """

    def __init__(
        self,
        kernels: Kernels,
        weights: tuple[Tensor, Tensor, Tensor, Tensor | None],
        *,
        cell_clip: float | None,
        projection_clip: float | None,
        kind: Kind,
        room: ScratchBuffers,
    ) -> None:
        input_weight, recurrent_weight, bias, projection_weight = weights
        self._kernels, self._kind, self._room = kernels, kind, room
        self._length = kernels.vector_length
        gates = [
            interleave(values.unflatten(0, (4, -1)), self._length)
            for values in (input_weight, recurrent_weight, bias)
        ]
        self._input = pack_matrix(kernels, gates[0], kind)
        self._recurrent = pack_matrix(kernels, gates[1], kind)
        self._bias = gates[2].contiguous()
        self._cell_dim, self._padded_cell_dim = len(bias) // 4, len(self._bias) // 4
        self._projection = None
        if projection_weight is not None:
            missing = self._padded_cell_dim - self._cell_dim
            wide = functional.pad(projection_weight, (0, missing))
            self._projection = pack_matrix(kernels, wide, kind)
        self._input_dim, self._dim = input_weight.shape[1], recurrent_weight.shape[1]
        self._clips = (cell_clip or 0.0, projection_clip or 0.0)

    def pack_cell(self, cell: Tensor) -> Tensor:
        """Return a copy in the order of the kernel: (B, H) -> (H / VL, B, VL)."""
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
        """Advance ``hidden`` and ``cell`` in place; return the outputs.

        Args:
            x: (P, input dim), contiguous.
            num_rows: int64, running rows of each step, never rising; their sum is P.
            hidden: (B, D), contiguous.
            cell: As `pack_cell` makes it.
            skip: Add ``x``, of width D, to the outputs.
            targets: int64 (P,) addresses at which the D values are written too, 0 for nowhere.

        Returns:
            (P, D).
        """
        rows, positions = len(hidden), int(num_rows.sum())
        out = torch.empty(positions, self._dim)
        gates_rows = max(GATE_ROWS, int(num_rows[0]) if len(num_rows) else 0)
        groups = self._room.take("x", positions, self._input.num_groups)
        gates = self._room.take("gates", gates_rows, len(self._bias))
        inner = inner_groups = None
        inner_stride = 0
        if self._projection is None or self._kind == "int8":
            inner = torch.empty(rows, self._padded_cell_dim)
        if self._projection is not None:
            # One line more than the values: rows at powers of two would share places of the cache.
            inner_stride = self._projection.num_groups + 16
            inner_groups = torch.empty(rows, inner_stride, dtype=torch.int32)
        hidden_groups = torch.empty(rows, self._recurrent.num_groups, dtype=torch.int32)
        scales, x_scales = torch.empty(2, rows), torch.empty(positions)
        none = MatrixArgument(TYPES[self._kind], 0, 0, None, None, None)
        call = LSTMCall(
            self._input.argument(), self._recurrent.argument(),
            self._projection.argument() if self._projection else none, len(num_rows), self._dim,
            self._padded_cell_dim, num_rows.ctypes.data, x.data_ptr(), self._input_dim,
            self._bias.data_ptr(), groups.data_ptr(), x_scales.data_ptr(), gates.data_ptr(),
            gates_rows, x.data_ptr() if skip else None, rows,
            hidden.data_ptr(), cell.data_ptr(), out.data_ptr(),
            None if targets is None else targets.ctypes.data, hidden_groups.data_ptr(),
            pointer(inner_groups), inner_stride, pointer(inner), scales[0].data_ptr(),
            scales[1].data_ptr(), *self._clips,
        )  # fmt: skip
        self._kernels.call("elmokit_lstm", call)
        return out
