"""`LSTMP` for training: the same numbers with a hand-written backward pass.

What need not recur is outside the recurrence, forward and backward: the input product of all steps
is one matrix product, and so is each weight's gradient. The recurrence itself runs in C where the
kernels can be had (`native_lstm`), else in PyTorch. Held equal to the plain layer by tests (values,
gradients, gradcheck).
"""

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from elmokit.bilm.bilm import DirectionState
from elmokit.bilm.lstmp import LSTMP
from elmokit.kernels.training import TrainingKernels, kernels_for
from elmokit.training.fused.recurrence import NativeLSTMP


def run_fused(
    layer: LSTMP, x: Tensor, state: DirectionState, mask: Tensor | None = None
) -> tuple[Tensor, DirectionState]:
    """Do what ``layer(x, state, mask)`` does; with padding by calling it.

    Under autocast to bf16 the kernels keep cells and sums in fp32; without kernels the layer is
    called.

    Shape: x (B, T, X), state ((B, D), (B, H)) -> outputs (B, T, D), state.
    """
    if mask is not None or x.numel() == 0:
        return layer(x, state, mask)
    found = kernels_for(layer.input_weight)
    if found is not None and _has_whole_vectors(layer, found[0]):
        with torch.autocast("cpu", enabled=False):
            return _run(functools.partial(NativeLSTMP.apply, *found), layer, x, state)
    if torch.is_autocast_enabled(x.device.type):
        return layer(x, state)
    return _run(_LSTMPFunction.apply, layer, x, state)


def _has_whole_vectors(layer: LSTMP, kernels: TrainingKernels) -> bool:
    """Tell whether the kernels take the layer's widths."""
    config = layer.config
    return config.cell_dim % kernels.vector_length == 0 and config.projection_dim % 2 == 0


def _run(
    function: Callable[..., Any], layer: LSTMP, x: Tensor, state: DirectionState
) -> tuple[Tensor, DirectionState]:
    outputs, hidden, cell = function(
        x.transpose(0, 1),
        *state,
        layer.input_weight,
        layer.recurrent_weight,
        layer.gate_bias(),
        layer.projection_weight,
        layer.config.cell_clip,
        layer.config.projection_clip,
    )
    return outputs.transpose(0, 1), (hidden, cell)


class _LSTMPFunction(torch.autograd.Function):
    """Time-major LSTMP: x (T, B, X) -> (outputs (T, B, D), hidden (B, D), cell (B, H))."""

    @staticmethod
    def forward(
        ctx: Any,
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
        num_steps, num_rows, _ = x.shape
        cell_dim = cell.shape[1]
        # (T, B, 4H); turned into activations in place
        gates = functional.linear(x, input_weight, bias)
        cells = x.new_empty(num_steps + 1, num_rows, cell_dim)
        tanh_cells = x.new_empty(num_steps, num_rows, cell_dim)
        hiddens = x.new_empty(num_steps + 1, num_rows, hidden.shape[1])
        cells[0], hiddens[0] = cell, hidden
        recurrent = recurrent_weight.t()
        project = None if projection_weight is None else projection_weight.t()
        for t in range(num_steps):
            gate = gates[t].addmm_(hiddens[t], recurrent)
            gate[:, : 2 * cell_dim].sigmoid_()
            gate[:, 2 * cell_dim : 3 * cell_dim].tanh_()
            gate[:, 3 * cell_dim :].sigmoid_()
            i, f, g, o = gate.split(cell_dim, dim=1)
            new_cell = torch.mul(f, cells[t], out=cells[t + 1]).addcmul_(i, g)
            if cell_clip is not None:
                new_cell.clamp_(-cell_clip, cell_clip)
            squashed = torch.tanh(new_cell, out=tanh_cells[t])
            if project is None:
                torch.mul(o, squashed, out=hiddens[t + 1])
                continue
            torch.mm(o * squashed, project, out=hiddens[t + 1])
            if projection_clip is not None:
                hiddens[t + 1].clamp_(-projection_clip, projection_clip)
        ctx.save_for_backward(
            x, gates, cells, tanh_cells, hiddens, input_weight, recurrent_weight, projection_weight
        )
        ctx.clips = (cell_clip, projection_clip)
        return hiddens[1:], hiddens[-1].clone(), cells[-1].clone()

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, grad_outputs: Tensor, grad_hidden: Tensor, grad_cell: Tensor
    ) -> tuple[Any, ...]:
        x, gates, cells, tanh_cells, hiddens, input_weight, recurrent_weight, projection_weight = (
            ctx.saved_tensors
        )
        cell_clip, projection_clip = ctx.clips
        num_steps, _, cell_dim = tanh_cells.shape
        grad_gates = torch.empty_like(gates)
        grad_projected = torch.empty_like(hiddens[1:])
        for t in reversed(range(num_steps)):
            i, f, g, o = gates[t].split(cell_dim, dim=1)
            squashed = tanh_cells[t]
            grad_h = torch.add(grad_outputs[t], grad_hidden, out=grad_projected[t])
            if projection_weight is not None:
                if projection_clip is not None:
                    grad_h.mul_(hiddens[t + 1].abs() < projection_clip)
                grad_h = grad_h @ projection_weight  # (B, H)
            grad_i, grad_f, grad_g, grad_o = grad_gates[t].split(cell_dim, dim=1)
            # tanh: y' = 1 - y²; sigmoid: y' = y - y²
            grad_c = grad_cell + (grad_h * o).mul_(1 - squashed.square())
            if cell_clip is not None:
                grad_c.mul_(cells[t + 1].abs() < cell_clip)
            torch.mul(grad_h, squashed, out=grad_o).mul_(o - o.square())
            torch.mul(grad_c, g, out=grad_i).mul_(i - i.square())
            torch.mul(grad_c, cells[t], out=grad_f).mul_(f - f.square())
            torch.mul(grad_c, i, out=grad_g).mul_(1 - g.square())
            grad_cell = grad_c.mul_(f)
            grad_hidden = grad_gates[t] @ recurrent_weight
        flat = grad_gates.flatten(0, 1)
        grad_projection = None
        if projection_weight is not None:
            unprojected = gates[:, :, 3 * cell_dim :] * tanh_cells  # (T, B, H)
            grad_projection = grad_projected.flatten(0, 1).t() @ unprojected.flatten(0, 1)
        return (
            (flat @ input_weight).view_as(x),
            grad_hidden,
            grad_cell,
            flat.t() @ x.reshape(-1, x.shape[2]),
            flat.t() @ hiddens[:-1].flatten(0, 1),
            flat.sum(dim=0),
            grad_projection,
            None,
            None,
        )
