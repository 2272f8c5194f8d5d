"""The recurrence of an LSTM layer in PyTorch, forward and backward by hand: that of `lstm`."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from elmokit.bilm.lstmp import LSTMConfig, LSTMWeights

Gradients = tuple[Tensor | None, ...]


class TorchRecurrence(torch.autograd.Function):
    """In PyTorch: on any device, in the parameters' dtype."""

    @staticmethod
    def forward(
        ctx: Any, config: LSTMConfig, x: Tensor, hidden: Tensor, cell: Tensor, *weights: Any
    ) -> tuple[Tensor, Tensor, Tensor]:
        own = LSTMWeights(*weights)
        num_steps, num_rows, _ = x.shape
        cell_dim, cell_clip = config.cell_dim, config.cell_clip
        projection_clip = config.projection_clip
        gates = functional.linear(x, own.input, own.bias)  # (T, B, 4H); activations in place
        # both with the initial state first
        cells = x.new_empty(num_steps + 1, num_rows, cell_dim)
        hiddens = x.new_empty(num_steps + 1, num_rows, hidden.shape[1])
        tanh_cells = x.new_empty(num_steps, num_rows, cell_dim)
        cells[0], hiddens[0] = cell, hidden
        recurrent = own.recurrent.t()
        project = None if own.projection is None else own.projection.t()
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
        ctx.config = config
        ctx.save_for_backward(hiddens, cells, x, gates, tanh_cells, *weights)
        return hiddens[1:], hiddens[-1].clone(), cells[-1].clone()

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, grad_outputs: Tensor, grad_hidden: Tensor, grad_cell: Tensor
    ) -> Gradients:
        hiddens, cells, x, gates, tanh_cells, *weights = ctx.saved_tensors
        own, config = LSTMWeights(*weights), ctx.config
        cell_dim, cell_clip = config.cell_dim, config.cell_clip
        projection_clip = config.projection_clip
        grad_gates = torch.empty_like(gates)
        grad_projected = torch.empty_like(hiddens[1:])
        for t in reversed(range(len(x))):
            i, f, g, o = gates[t].split(cell_dim, dim=1)
            squashed = tanh_cells[t]
            grad_h = torch.add(grad_outputs[t], grad_hidden, out=grad_projected[t])
            if own.projection is not None:
                # a clipped value does not move with what was clipped
                if projection_clip is not None:
                    grad_h.mul_(hiddens[t + 1].abs() < projection_clip)
                grad_h = grad_h @ own.projection  # (B, H)
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
            grad_hidden = grad_gates[t] @ own.recurrent
        flat = grad_gates.flatten(0, 1)
        grad_projection = None
        if own.projection is not None:
            unprojected = gates[:, :, 3 * cell_dim :] * tanh_cells  # (T, B, H)
            grad_projection = grad_projected.flatten(0, 1).t() @ unprojected.flatten(0, 1)
        grad_x = (flat @ own.input).view_as(x)
        grad_input = flat.t() @ x.reshape(-1, x.shape[2])
        grad_recurrent = flat.t() @ hiddens[:-1].flatten(0, 1)
        grad_weights = LSTMWeights(grad_input, grad_recurrent, flat.sum(dim=0), grad_projection)
        return None, grad_x, grad_hidden, grad_cell, *grad_weights
