"""The recurrence of `LSTMP`, forward and backward, in C and in PyTorch; time-major.

The definition of the cell and its other spellings: `elmokit.bilm.lstmp`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor
from torch.nn import functional

from elmokit.bilm.lstmp import LSTMConfig, LSTMWeights
from elmokit.kernels.buffers import PackedMatrix, fp32_empty
from elmokit.kernels.training import TrainingKernels

Gradients = tuple[Any, ...]
Results = tuple[Tensor, Tensor, tuple[Tensor, ...]]


@runtime_checkable
class Recurrence(Protocol):
    """An implementation."""

    def forward(
        self, config: LSTMConfig, x: Tensor, hidden: Tensor, cell: Tensor, weights: LSTMWeights
    ) -> Results:
        """Read x (T, B, X), starting from a state.

        Returns:
            Hidden values (T + 1, B, D) and cells (T + 1, B, H), both with the initial state first,
            and the other tensors that `backward` needs.
        """
        ...

    def backward(
        self, config: LSTMConfig, saved: Sequence[Tensor], weights: LSTMWeights, grads: Gradients
    ) -> Gradients:
        """Return the gradients of x (T, B, X), hidden (B, D), cell (B, H), and of the weights.

        ``saved`` is all that `forward` returned; ``grads`` are the gradients of the outputs
        (T, B, D) and of the last hidden values and cells.
        """
        ...


class TorchRecurrence:
    """In PyTorch: on any device, in the parameters' dtype."""

    def forward(
        self, config: LSTMConfig, x: Tensor, hidden: Tensor, cell: Tensor, weights: LSTMWeights
    ) -> Results:
        """Return hidden values, cells and what the gradient reads."""
        num_steps, num_rows, _ = x.shape
        cell_dim, cell_clip = config.cell_dim, config.cell_clip
        projection_clip = config.projection_clip
        # (T, B, 4H); become activations in place
        gates = functional.linear(x, weights.input, weights.bias)
        cells = x.new_empty(num_steps + 1, num_rows, cell_dim)
        tanh_cells = x.new_empty(num_steps, num_rows, cell_dim)
        hiddens = x.new_empty(num_steps + 1, num_rows, hidden.shape[1])
        cells[0], hiddens[0] = cell, hidden
        recurrent = weights.recurrent.t()
        project = None if weights.projection is None else weights.projection.t()
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
        return hiddens, cells, (x, gates, tanh_cells)

    def backward(
        self, config: LSTMConfig, saved: Sequence[Tensor], weights: LSTMWeights, grads: Gradients
    ) -> Gradients:
        """Return the gradients."""
        hiddens, cells, x, gates, tanh_cells = saved
        grad_outputs, grad_hidden, grad_cell = grads
        cell_dim, cell_clip = config.cell_dim, config.cell_clip
        projection_clip = config.projection_clip
        grad_gates = torch.empty_like(gates)
        grad_projected = torch.empty_like(hiddens[1:])
        for t in reversed(range(len(x))):
            i, f, g, o = gates[t].split(cell_dim, dim=1)
            squashed = tanh_cells[t]
            grad_h = torch.add(grad_outputs[t], grad_hidden, out=grad_projected[t])
            if weights.projection is not None:
                if projection_clip is not None:
                    grad_h.mul_(hiddens[t + 1].abs() < projection_clip)
                grad_h = grad_h @ weights.projection  # (B, H)
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
            grad_hidden = grad_gates[t] @ weights.recurrent
        flat = grad_gates.flatten(0, 1)
        grad_projection = None
        if weights.projection is not None:
            unprojected = gates[:, :, 3 * cell_dim :] * tanh_cells  # (T, B, H)
            grad_projection = grad_projected.flatten(0, 1).t() @ unprojected.flatten(0, 1)
        grad_x = (flat @ weights.input).view_as(x)
        grad_input = flat.t() @ x.reshape(-1, x.shape[2])
        grad_recurrent = flat.t() @ hiddens[:-1].flatten(0, 1)
        grad_weights = LSTMWeights(grad_input, grad_recurrent, flat.sum(dim=0), grad_projection)
        return grad_x, grad_hidden, grad_cell, *grad_weights


@dataclass(frozen=True)
class KernelRecurrence:
    """In C, one call for all steps. The large products read ``dtype``; cells and sums are fp32."""

    kernels: TrainingKernels
    dtype: torch.dtype

    def forward(
        self, config: LSTMConfig, x: Tensor, hidden: Tensor, cell: Tensor, weights: LSTMWeights
    ) -> Results:
        """Return hidden values, cells and what the gradient reads."""
        num_steps, num_rows, _ = x.shape
        dim, cell_dim = hidden.shape[1], cell.shape[1]
        flat = x.to(self.dtype).flatten(0, 1).contiguous()  # (T*B, X)
        gates = flat @ weights.input.to(self.dtype).t()  # (T*B, 4H); becomes activations
        cells = fp32_empty(num_steps + 1, num_rows, cell_dim)
        hiddens = fp32_empty(num_steps + 1, num_rows, dim)
        is_wide = self.dtype == torch.float32
        typed = hiddens if is_wide else torch.empty_like(hiddens, dtype=self.dtype)
        inners = torch.empty(num_steps, num_rows, cell_dim, dtype=self.dtype, device="cpu")
        cells[0], hiddens[0] = cell, hidden
        typed[0] = hidden
        recurrent = self.kernels.pack(weights.recurrent, self.dtype, blocks=4)
        projection = None
        if weights.projection is not None:
            projection = self.kernels.pack(weights.projection, self.dtype)
        self.kernels.call(
            "lstm_forward",
            **self._common_fields(config, recurrent, projection, inners, hiddens, cells, gates),
            bias=weights.bias, inners=inners, typed_hiddens=typed,
        )  # fmt: skip
        return hiddens, cells, (flat, gates, inners, typed)

    def backward(
        self, config: LSTMConfig, saved: Sequence[Tensor], weights: LSTMWeights, grads: Gradients
    ) -> Gradients:
        """Return the gradients."""
        hiddens, cells, flat, gates, inners, typed = saved
        (num_steps, num_rows, _), dim = inners.shape, hiddens.shape[2]
        grad_gates = torch.empty_like(gates)
        grad_projected = torch.empty(num_steps * num_rows, dim, dtype=self.dtype, device="cpu")
        grad_outputs = grads[0].contiguous()
        grad_hidden, grad_cell = (
            grad.clone(memory_format=torch.contiguous_format) for grad in grads[1:]
        )
        recurrent = self.kernels.pack(weights.recurrent, self.dtype, transposed=True)
        projection = None
        if weights.projection is not None:
            projection = self.kernels.pack(weights.projection, self.dtype, transposed=True)
        self.kernels.call(
            "lstm_backward",
            **self._common_fields(config, recurrent, projection, inners, hiddens, cells, gates),
            grad_outputs=grad_outputs, grad_hidden=grad_hidden, grad_cell=grad_cell,
            grad_gates=grad_gates, grad_projected=grad_projected,
        )  # fmt: skip
        read = torch.cat((flat, typed[:-1].flatten(0, 1)), dim=1)  # (T*B, X + D)
        grad_weights = (grad_gates.t() @ read).float().split([flat.shape[1], dim], dim=1)
        grad_x = (grad_gates @ weights.input.to(self.dtype)).float()
        grad_projection = None
        if weights.projection is not None:
            grad_projection = (grad_projected.t() @ inners.flatten(0, 1)).float()
        grad_bias = self.kernels.column_sums(grad_gates)
        grad_x = grad_x.view(num_steps, num_rows, -1)
        return grad_x, grad_hidden, grad_cell, *grad_weights, grad_bias, grad_projection

    def _common_fields(
        self,
        config: LSTMConfig,
        recurrent: PackedMatrix,
        projection: PackedMatrix | None,
        inners: Tensor,
        hiddens: Tensor,
        cells: Tensor,
        gates: Tensor,
    ) -> dict[str, Any]:
        """Return the kernel arguments that forward and backward share."""
        num_steps, num_rows, cell_dim = inners.shape
        fields: dict[str, Any] = {
            "recurrent": recurrent.argument(self.kernels),
            "parameters": self.kernels.structure_from("lstm_cell", config),
            "type": self.kernels.types[self.dtype], "num_steps": num_steps, "num_rows": num_rows,
            "dim": hiddens.shape[2], "cell_dim": cell_dim,
            "gates": gates, "cells": cells, "hiddens": hiddens,
        }  # fmt: skip
        if projection is not None:
            fields["projection"] = projection.argument(self.kernels)
        return fields
