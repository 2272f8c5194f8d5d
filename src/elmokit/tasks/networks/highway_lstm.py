"""Deep LSTM with alternating directions and highway gates: the encoder of SRL."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from elmokit.bilm.masking import reverse_sequences
from elmokit.tasks.networks.encoder import FORGET_BIAS, PaddedEncoder
from elmokit.tasks.networks.initialization import draw_weights


@dataclass(frozen=True, kw_only=True)
class HighwayLSTMConfig:
    """Shape of the encoder, by default that of He et al. 2017."""

    num_layers: int = 8
    """The first reads left to right, the second right to left, and so on."""
    hidden_dim: int = 300
    """H, width of every layer."""
    dropout: float = 0.1
    """Variational dropout of each layer's output."""

    def __post_init__(self) -> None:
        for name in ("num_layers", "hidden_dim"):
            if getattr(self, name) < 1:
                raise ValueError(f"`{name}` must be at least 1, got {getattr(self, name)}")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"`dropout` must be at least 0 and below 1, got {self.dropout}")


class HighwayLSTMLayer(nn.Module):
    """One LSTM layer with a highway around it, read in one direction.

    With input x_t, output h and cell c, at each position
    ``i, f, o, r, g = W x_t + U h + b`` (blocks of H in this order),
    ``c = sigmoid(f) * c + sigmoid(i) * tanh(g)``,
    ``h = kept * (sigmoid(r) * sigmoid(o) * tanh(c) + (1 - sigmoid(r)) * V x_t)``
    where ``kept`` is the dropout mask, one for all positions.

    Fresh weights: every block of W, U and V orthonormal, b 0 except the forget gate (1); drawn with
    seed 0 until a model draws its own.

    Shape: x (B, T, input_dim) -> (B, T, H).
    Source: He et al. 2017 (Deep Semantic Role Labeling), section 2.
    """

    def __init__(self, input_dim: int, hidden_dim: int) -> None:
        super().__init__()
        self.hidden_dim = hidden_dim
        self.input_weight = nn.Parameter(torch.zeros(5 * hidden_dim, input_dim))
        self.recurrent_weight = nn.Parameter(torch.zeros(5 * hidden_dim, hidden_dim))
        self.bias = nn.Parameter(torch.zeros(5 * hidden_dim))
        self.carry_weight = nn.Parameter(torch.zeros(hidden_dim, input_dim))
        self.reset_parameters(torch.Generator().manual_seed(0))

    def reset_parameters(self, generator: torch.Generator) -> None:
        for weight in (self.input_weight, self.recurrent_weight, self.carry_weight):
            for block in weight.detach().split(self.hidden_dim):
                nn.init.orthogonal_(block, generator=generator)
        nn.init.zeros_(self.bias)
        nn.init.constant_(self.bias.detach()[self.hidden_dim : 2 * self.hidden_dim], FORGET_BIAS)

    def forward(
        self, x: Float[Tensor, "B T X"], kept: Float[Tensor, "B H"] | None = None
    ) -> Float[Tensor, "B T H"]:
        """Read ``x`` from its first position to its last; ``kept`` is a scaled dropout mask."""
        hidden_dim = self.hidden_dim
        gates_in = functional.linear(x, self.input_weight, self.bias).unbind(dim=1)  # T of (B, 5H)
        carried = functional.linear(x, self.carry_weight).unbind(dim=1)  # T of (B, H)
        recurrent = self.recurrent_weight.t()
        hidden = cell = x.new_zeros(x.shape[0], hidden_dim)
        outputs = []
        for gate_in, carry in zip(gates_in, carried, strict=True):
            gates = torch.addmm(gate_in, hidden, recurrent)  # (B, 5H)
            i, f, o, r = torch.sigmoid(gates[:, : 4 * hidden_dim]).chunk(4, dim=1)
            cell = f * cell + i * torch.tanh(gates[:, 4 * hidden_dim :])
            hidden = r * (o * torch.tanh(cell)) + (1 - r) * carry
            if kept is not None:
                hidden = hidden * kept
            outputs.append(hidden)
        if not outputs:
            return x.new_zeros(x.shape[0], 0, hidden_dim)
        return torch.stack(outputs, dim=1)


class AlternatingHighwayLSTM(PaddedEncoder):
    """Stack of highway LSTM layers, each reading the one below in the other direction.

    Source: He et al. 2017, section 2; Zhou and Xu 2015 for the alternation.
    """

    def __init__(self, input_dim: int, config: HighwayLSTMConfig) -> None:
        super().__init__()
        self.config, self.output_dim = config, config.hidden_dim
        widths = [input_dim] + [config.hidden_dim] * (config.num_layers - 1)
        self.layers = nn.ModuleList(HighwayLSTMLayer(width, config.hidden_dim) for width in widths)
        self.reset_parameters(torch.Generator().manual_seed(0))

    def reset_parameters(self, generator: torch.Generator) -> None:
        draw_weights(self.layers, generator)

    def read(self, x: Tensor, lengths: Tensor) -> Tensor:
        for index, layer in enumerate(self.layers):
            # padding comes last in either order, so it affects no real position
            if index > 0:
                x = reverse_sequences(x, lengths)
            x = layer(x, self._draw_kept(x))
        return reverse_sequences(x, lengths) if self.config.num_layers % 2 == 0 else x

    def _draw_kept(self, x: Tensor) -> Tensor | None:
        if not self.training or self.config.dropout == 0:
            return None
        ones = x.new_ones(x.shape[0], self.config.hidden_dim)
        return functional.dropout(ones, self.config.dropout)
