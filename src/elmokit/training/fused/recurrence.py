"""The recurrence of `LSTMP` in C, forward and backward, for `fused_lstm`.

One call does all steps; weights are packed once a call. Cells, their gradients and all sums are
fp32; what the large products read is fp32 or bf16.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from elmokit.kernels.training import (
    NO_MATRIX,
    TYPES,
    LSTMBackwardCall,
    LSTMForwardCall,
    TrainingKernels,
    address,
)


class NativeLSTMP(torch.autograd.Function):
    """Time-major LSTMP: x (T, B, X) -> (outputs (T, B, D), hidden (B, D), cell (B, H))."""

    @staticmethod
    def forward(
        ctx: Any,
        kernels: TrainingKernels,
        dtype: torch.dtype,
        x: Tensor,
        hidden: Tensor,
        cell: Tensor,
        input_weight: Tensor,
        recurrent_weight: Tensor,
        bias: Tensor,
        projection_weight: Tensor | None,
        cell_clip: float | None,
        projection_clip: float | None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Keep the gates' activations, cells, and what the projection reads."""
        num_steps, num_rows, _ = x.shape
        dim, cell_dim = hidden.shape[1], cell.shape[1]
        flat = x.to(dtype).flatten(0, 1).contiguous()  # (T*B, X)
        gates = flat @ input_weight.to(dtype).t()  # (T*B, 4H); becomes activations
        cells = torch.empty(num_steps + 1, num_rows, cell_dim)
        hiddens = torch.empty(num_steps + 1, num_rows, dim)
        typed = hiddens if dtype == torch.float32 else torch.empty_like(hiddens, dtype=dtype)
        inners = torch.empty(num_steps, num_rows, cell_dim, dtype=dtype)
        cells[0], hiddens[0] = cell, hidden
        typed[0] = hidden
        recurrent = kernels.pack(recurrent_weight, dtype, blocks=4)
        projection = None if projection_weight is None else kernels.pack(projection_weight, dtype)
        ctx.clips = (cell_clip or 0.0, projection_clip or 0.0)
        kernels.call(
            "lstm_forward",
            LSTMForwardCall(
                recurrent.argument(), projection.argument() if projection else NO_MATRIX,
                TYPES[dtype], num_steps, num_rows, dim, cell_dim, address(gates, dtype=dtype),
                address(bias), address(cells), address(inners, dtype=dtype), address(hiddens),
                address(typed, dtype=dtype), *ctx.clips,
            ),
        )  # fmt: skip
        ctx.kernels = kernels
        ctx.save_for_backward(
            flat, gates, cells, inners, hiddens, typed, input_weight, recurrent_weight,
            projection_weight,
        )  # fmt: skip
        return hiddens[1:], hiddens[-1].clone(), cells[-1].clone()

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, grad_outputs: Tensor, grad_hidden: Tensor, grad_cell: Tensor
    ) -> tuple[Any, ...]:
        """Return the gradients of all arguments."""
        (
            flat, gates, cells, inners, hiddens, typed, input_weight, recurrent_weight,
            projection_weight,
        ) = ctx.saved_tensors  # fmt: skip
        kernels, dtype = ctx.kernels, flat.dtype
        num_steps, num_rows, cell_dim = inners.shape
        dim = hiddens.shape[2]
        grad_gates = torch.empty_like(gates)
        grad_projected = torch.empty(num_steps * num_rows, dim, dtype=dtype)
        grad_outputs = grad_outputs.contiguous()
        grad_hidden, grad_cell = (
            grad.clone(memory_format=torch.contiguous_format) for grad in (grad_hidden, grad_cell)
        )
        recurrent = kernels.pack(recurrent_weight, dtype, transposed=True)
        projection = None
        if projection_weight is not None:
            projection = kernels.pack(projection_weight, dtype, transposed=True)
        kernels.call(
            "lstm_backward",
            LSTMBackwardCall(
                projection.argument() if projection else NO_MATRIX, recurrent.argument(),
                TYPES[dtype], num_steps, num_rows, dim, cell_dim, address(gates, dtype=dtype),
                address(cells), address(hiddens), address(grad_outputs), address(grad_hidden),
                address(grad_cell), address(grad_gates, dtype=dtype),
                address(grad_projected, dtype=dtype), *ctx.clips,
            ),
        )  # fmt: skip
        read = torch.cat((flat, typed[:-1].flatten(0, 1)), dim=1)  # (T*B, X + D)
        grad_weights = (grad_gates.t() @ read).float().split([flat.shape[1], dim], dim=1)
        grad_x = (grad_gates @ input_weight.to(dtype)).float()
        grad_projection = None
        if projection_weight is not None:
            grad_projection = (grad_projected.t() @ inners.flatten(0, 1)).float()
        return (
            None,
            None,
            grad_x.view(num_steps, num_rows, -1),
            grad_hidden,
            grad_cell,
            *grad_weights,
            kernels.column_sums(grad_gates),
            grad_projection,
            None,
            None,
        )
