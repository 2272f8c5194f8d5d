"""LSTM with projection: one layer in one direction, the plain version.

The other spellings of this cell are held equal to it by tests: ``kernels/c/lstm_cell.h`` (C, for
inference and training), `elmokit.training.fused.lstm_torch` (training without a compiler),
`elmokit.inference.numpy_backend`, `elmokit.weights.onnx_file` and
``web/page/static/engine/bilm.js``.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from elmokit.bilm.lstm_config import FORGET_OFFSET, LSTMConfig
from elmokit.shapes import Bool, Float


class LSTMWeights(NamedTuple):
    """The weights of one layer, as in the equations."""

    input: Tensor  # (4H, input_dim)
    recurrent: Tensor  # (4H, D)
    bias: Tensor  # (4H,), forget offset included
    projection: Tensor | None  # (D, H); none if D equals H


class LSTMP(nn.Module):
    """One LSTM layer with projection, cell clip and projection clip.

    With x_t the input, h the projected output and c the cell:
    ``i, f, g, o = W x_t + U h + b`` (blocks of H in this order),
    ``c = clip(sigmoid(f + 1) * c + sigmoid(i) * tanh(g))``, ``h = clip(P (sigmoid(o) * tanh(c)))``.

    Shape: x (B, T, input_dim), state ((B, D), (B, H)) -> outputs (B, T, D), state.
    Source: Peters et al. 2018, section 3.4; Sak et al. 2014.
    """

    def __init__(self, input_dim: int, config: LSTMConfig) -> None:
        super().__init__()
        cell_dim, projection_dim = config.cell_dim, config.projection_dim
        self.config = config
        self.input_weight = nn.Parameter(torch.zeros(4 * cell_dim, input_dim))
        self.recurrent_weight = nn.Parameter(torch.zeros(4 * cell_dim, projection_dim))
        self.bias = nn.Parameter(torch.zeros(4 * cell_dim))
        self.projection_weight = None
        if projection_dim != cell_dim:
            self.projection_weight = nn.Parameter(torch.zeros(projection_dim, cell_dim))

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw weights as the original does: Glorot uniform over the kernel of [x; h], bias 0."""
        fan_in = self.input_weight.shape[1] + self.recurrent_weight.shape[1]
        bound = (6 / (fan_in + self.input_weight.shape[0])) ** 0.5
        nn.init.uniform_(self.input_weight, -bound, bound, generator=generator)
        nn.init.uniform_(self.recurrent_weight, -bound, bound, generator=generator)
        nn.init.zeros_(self.bias)
        if self.projection_weight is not None:
            nn.init.xavier_uniform_(self.projection_weight, generator=generator)

    def gate_bias(self) -> Tensor:
        """Return the bias with the forget offset added, (4H,)."""
        cell_dim = self.config.cell_dim
        offset = torch.zeros_like(self.bias)
        offset[cell_dim : 2 * cell_dim] = FORGET_OFFSET
        return self.bias + offset

    def weights(self) -> LSTMWeights:
        return LSTMWeights(
            self.input_weight, self.recurrent_weight, self.gate_bias(), self.projection_weight
        )

    def forward(
        self,
        x: Float[Tensor, "B T X"],
        state: tuple[Float[Tensor, "B D"], Float[Tensor, "B H"]],
        mask: Bool[Tensor, "B T"] | None = None,
    ) -> tuple[Float[Tensor, "B T D"], tuple[Float[Tensor, "B D"], Float[Tensor, "B H"]]]:
        """Return the outputs and the state after each row's last real position.

        Args:
            x: Inputs in reading order.
            state: (h, c) before the first position.
            mask: True at real positions; elsewhere the state does not change and the output is 0.
        """
        hidden, cell = state
        # W x_t + b does not depend on the recurrence, so one product gives it for all positions
        products = functional.linear(x, self.input_weight, self.gate_bias())  # (B, T, 4H)
        gates_in = products.unbind(dim=1)  # T of (B, 4H)
        keep = None if mask is None else mask.unsqueeze(2).unbind(dim=1)  # T of (B, 1)
        outputs = []
        for t, gate_in in enumerate(gates_in):
            new_hidden, new_cell = self.step(gate_in, hidden, cell)
            if keep is None:
                hidden, cell = new_hidden, new_cell
                outputs.append(hidden)
            else:
                hidden = torch.where(keep[t], new_hidden, hidden)
                cell = torch.where(keep[t], new_cell, cell)
                outputs.append(new_hidden * keep[t])
        if not outputs:
            return x.new_zeros(x.shape[0], 0, hidden.shape[1]), state
        return torch.stack(outputs, dim=1), (hidden, cell)

    def step(
        self,
        gate_in: Float[Tensor, "B G"],
        hidden: Float[Tensor, "B D"],
        cell: Float[Tensor, "B H"],
    ) -> tuple[Float[Tensor, "B D"], Float[Tensor, "B H"]]:
        """Advance by one position; ``gate_in`` (B, 4H) is the input product plus the bias."""
        gates = gate_in + functional.linear(hidden, self.recurrent_weight)
        i, f, g, o = gates.chunk(4, dim=-1)
        cell = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(g)
        if self.config.cell_clip is not None:
            cell = cell.clamp(-self.config.cell_clip, self.config.cell_clip)
        hidden = torch.sigmoid(o) * torch.tanh(cell)
        if self.projection_weight is not None:
            hidden = functional.linear(hidden, self.projection_weight)
            if self.config.projection_clip is not None:
                hidden = hidden.clamp(-self.config.projection_clip, self.config.projection_clip)
        return hidden, cell
