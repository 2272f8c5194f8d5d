"""The biLM's LSTM stacks for training, forward and backward by hand, in C.

A recurrence is time-major: (…, config, x (T, B, X), hidden (B, D), cell (B, H), *weights) ->
outputs (T, B, D), hidden (B, D), cell (B, H). The input product of all steps is one matrix product,
and so is each weight's gradient; only the recurrence goes step by step. The definition of the cell
and its other spellings: `elmokit.bilm.lstmp`.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from elmokit.bilm.bilm import BiLM, Direction, DirectionState
from elmokit.bilm.lstmp import LSTMP, LSTMConfig, LSTMWeights
from elmokit.kernels.training import TrainingKernels, fp32_empty, kernels_for
from elmokit.training.fused.lstm_torch import Gradients, TorchRecurrence


def run_direction_fused(
    model: BiLM,
    direction: Direction,
    x: Tensor,
    *,
    state: DirectionState,
    dropout: Callable[[Tensor], Tensor],
) -> tuple[Tensor, DirectionState]:
    """Return the top of `BiLM.run_direction` without padding, with dropout, and the new state.

    ``dropout`` acts on every layer's input; the skip connection adds the dropped input.
    """
    stack = model.forward_layers if direction == "forward" else model.backward_layers
    hiddens, cells = [], []
    for index, (layer, hidden, cell) in enumerate(zip(stack, *state, strict=True)):
        assert isinstance(layer, LSTMP)
        layer_in = dropout(x)
        x, (hidden, cell) = run_fused(layer, layer_in, (hidden, cell))
        if index > 0 and model.config.lstm.skip_connections:
            x = x + layer_in
        hiddens.append(hidden)
        cells.append(cell)
    return x, (torch.stack(hiddens), torch.stack(cells))


def run_fused(layer: LSTMP, x: Tensor, state: DirectionState) -> tuple[Tensor, DirectionState]:
    """Return ``layer(x, state)``; under autocast without kernels the layer itself is called.

    Shape: x (B, T, X), state ((B, D), (B, H)) -> outputs (B, T, D), state.
    """
    available, config = kernels_for(layer.input_weight), layer.config
    # the loops of the kernels have no remainders
    has_whole_vectors = (
        available is not None
        and config.cell_dim % available[0].vector_length == 0
        and config.projection_dim % 2 == 0
    )
    if not has_whole_vectors and torch.is_autocast_enabled(x.device.type):
        return layer(x, state)
    inputs = (config, x.transpose(0, 1), *state, *layer.weights())
    with torch.autocast("cpu", enabled=False):
        if available is not None and has_whole_vectors:
            outputs, hidden, cell = KernelRecurrence.apply(*available, *inputs)
        else:
            outputs, hidden, cell = TorchRecurrence.apply(*inputs)
    return outputs.transpose(0, 1), (hidden, cell)


class KernelRecurrence(torch.autograd.Function):
    """In C, one call for all steps. The large products read ``dtype``; cells and sums are fp32."""

    @staticmethod
    def forward(
        ctx: Any, kernels: TrainingKernels, dtype: torch.dtype, config: LSTMConfig, x: Tensor,
        hidden: Tensor, cell: Tensor, *weights: Any,
    ) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
        own = LSTMWeights(*weights)
        num_steps, num_rows, _ = x.shape
        flat = x.to(dtype).flatten(0, 1).contiguous()  # (T*B, X)
        gates = flat @ own.input.to(dtype).t()  # (T*B, 4H); becomes activations
        cells = fp32_empty(num_steps + 1, num_rows, cell.shape[1])
        hiddens = fp32_empty(num_steps + 1, num_rows, hidden.shape[1])
        # what the products read, and the gradients: the same memory if all is fp32
        typed = hiddens if dtype == torch.float32 else torch.empty_like(hiddens, dtype=dtype)
        inners = torch.empty(num_steps, num_rows, cell.shape[1], dtype=dtype, device="cpu")
        cells[0], hiddens[0] = cell, hidden
        typed[0] = hidden
        recurrent = kernels.pack(own.recurrent, dtype, blocks=4)
        projection = None if own.projection is None else kernels.pack(own.projection, dtype)
        kernels.call(
            "lstm_forward", bias=own.bias, typed_hiddens=typed, inners=inners,
            **_fields(kernels, config, recurrent, projection, inners, hiddens, cells, gates),
        )  # fmt: skip
        ctx.kernels, ctx.config = kernels, config
        ctx.save_for_backward(hiddens, cells, flat, gates, inners, typed, *weights)
        return hiddens[1:], hiddens[-1].clone(), cells[-1].clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_outputs: Tensor, *grad_state: Tensor) -> Gradients:  # pyright: ignore[reportIncompatibleMethodOverride]
        hiddens, cells, flat, gates, inners, typed, *weights = ctx.saved_tensors
        own, kernels, dtype = LSTMWeights(*weights), ctx.kernels, gates.dtype
        (num_steps, num_rows, _), dim = inners.shape, hiddens.shape[2]
        grad_gates = torch.empty_like(gates)
        grad_projected = torch.empty(num_steps * num_rows, dim, dtype=dtype, device="cpu")
        # C adds to the gradients of the state, and reads all row by row
        grad_outputs = grad_outputs.contiguous()
        grad_hidden, grad_cell = (
            grad.clone(memory_format=torch.contiguous_format) for grad in grad_state
        )
        recurrent = kernels.pack(own.recurrent, dtype, transposed=True)
        projection = None
        if own.projection is not None:
            projection = kernels.pack(own.projection, dtype, transposed=True)
        kernels.call(
            "lstm_backward", grad_outputs=grad_outputs, grad_hidden=grad_hidden,
            grad_cell=grad_cell, grad_gates=grad_gates, grad_projected=grad_projected,
            **_fields(kernels, ctx.config, recurrent, projection, inners, hiddens, cells, gates),
        )  # fmt: skip
        read = torch.cat((flat, typed[:-1].flatten(0, 1)), dim=1)  # (T*B, X + D)
        grad_weights = (grad_gates.t() @ read).float().split([flat.shape[1], dim], dim=1)
        grad_x = (grad_gates @ own.input.to(dtype)).float().view(num_steps, num_rows, -1)
        grad_projection = None
        if own.projection is not None:
            grad_projection = (grad_projected.t() @ inners.flatten(0, 1)).float()
        grad_bias = kernels.column_sums(grad_gates)
        grads = grad_x, grad_hidden, grad_cell, *grad_weights, grad_bias, grad_projection
        return None, None, None, *grads


def _fields(
    kernels: TrainingKernels, config: LSTMConfig, recurrent: Any, projection: Any, inners: Tensor,
    hiddens: Tensor, cells: Tensor, gates: Tensor,
) -> dict[str, Any]:  # fmt: skip
    num_steps, num_rows, cell_dim = inners.shape
    fields: dict[str, Any] = {
        "recurrent": recurrent.argument(kernels),
        "parameters": kernels.structure_from("lstm_cell", config),
        "type": kernels.types[gates.dtype], "num_steps": num_steps, "num_rows": num_rows,
        "dim": hiddens.shape[2], "cell_dim": cell_dim,
        "gates": gates, "cells": cells, "hiddens": hiddens,
    }  # fmt: skip
    if projection is not None:
        fields["projection"] = projection.argument(kernels)
    return fields
