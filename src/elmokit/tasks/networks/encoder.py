"""The sentence encoder of the task models: recurrent layers with variational dropout."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from elmokit.bilm.masking import lengths_of, reverse_sequences
from elmokit.field_checks import check_choices
from elmokit.tasks.networks.gru import gru_steps

FORGET_BIAS = 1.0
"""Fresh bias of an LSTM's forget gate, so that memory is kept at first."""


class VariationalDropout(nn.Module):
    """Dropout of the same features at all positions of a sentence: (B, T, X) -> (B, T, X).

    Source: Gal and Ghahramani 2016.
    """

    def __init__(self, share: float) -> None:
        super().__init__()
        if not 0 <= share < 1:
            raise ValueError(f"`share` must be at least 0 and below 1, got {share}.")
        self.share = share

    def forward(self, x: Float[Tensor, "B T X"]) -> Float[Tensor, "B T X"]:
        """Return ``x`` with one random mask per row, rescaled; unchanged outside training."""
        if not self.training or self.share == 0:
            return x
        kept = functional.dropout(x.new_ones(x.shape[0], 1, x.shape[2]), self.share)
        return x * kept


def single_width(hidden_dims: tuple[int, ...]) -> int:
    """Return the only width; ValueError if there is not exactly one."""
    if len(hidden_dims) != 1:
        raise ValueError(f"`hidden_dims` must be one width, got {list(hidden_dims)}.")
    return hidden_dims[0]


@dataclass(frozen=True, kw_only=True)
class SentenceEncoderConfig:
    """Shape of a sentence encoder."""

    hidden_dims: tuple[int, ...] = (200,)
    """Width of one direction, layer by layer."""
    cell: Literal["lstm", "gru"] = "lstm"
    """Kind of recurrent layer."""
    dropout: float = 0.0
    """Variational dropout at every layer's input."""

    def __post_init__(self) -> None:
        check_choices(self)
        if not self.hidden_dims or min(self.hidden_dims) < 1:
            raise ValueError(
                f"`hidden_dims` must hold one width of at least 1 per layer, got {self.hidden_dims}"
            )
        if not 0 <= self.dropout < 1:
            raise ValueError(f"`dropout` must be at least 0 and below 1, got {self.dropout}")


class PaddedEncoder(nn.Module, ABC):
    """Encoder of padded sentences.

    Shape: x (B, T, X), mask (B, T) -> (B, T, output_dim), 0 at padded positions.
    """

    output_dim: int

    @abstractmethod
    def read(self, x: Float[Tensor, "B T X"], lengths: Int[Tensor, " B"]) -> Float[Tensor, "B T Y"]:
        """Return one vector per position, anything at padded ones; ``x`` is 0 there."""

    def forward(
        self, x: Float[Tensor, "B T X"], mask: Bool[Tensor, "B T"]
    ) -> Float[Tensor, "B T Y"]:
        """Return one vector per position; values of ``x`` at padded positions do not matter.

        Raises:
            ValueError: if padding comes before real positions.
        """
        lengths = lengths_of(mask)
        if mask.numel() == 0:
            return x.new_zeros(x.shape[0], x.shape[1], self.output_dim)
        padding = ~mask.unsqueeze(2)
        x = x.masked_fill(padding, 0)
        return self.read(x, lengths).masked_fill(padding, 0)


class SentenceEncoder(PaddedEncoder):
    """Stack of biLSTM or biGRU layers; a position's vector is [forward | backward].

    Fresh weights: orthogonal recurrent blocks, Glorot uniform input blocks, biases 0 except the
    LSTM's forget gates (1); drawn with seed 0 until a model draws its own.

    Under autocast on the CPU the layers compute in their weights' precision: torch's bf16 LSTM
    fails on processors without bf16 instructions.
    """

    def __init__(self, input_dim: int, config: SentenceEncoderConfig) -> None:
        super().__init__()
        self.config = config
        self.dropout = VariationalDropout(config.dropout)
        kind = nn.LSTM if config.cell == "lstm" else nn.GRU
        self.layers = nn.ModuleList()
        for hidden_dim in config.hidden_dims:
            self.layers.append(kind(input_dim, hidden_dim, batch_first=True, bidirectional=True))
            input_dim = 2 * hidden_dim
        self.output_dim = input_dim
        self.reset_parameters(torch.Generator().manual_seed(0))

    def reset_parameters(self, generator: torch.Generator) -> None:
        for layer, hidden_dim in zip(self.layers, self.config.hidden_dims, strict=True):
            for name, parameter in layer.named_parameters():
                gates = parameter.detach().split(hidden_dim)  # LSTM: i, f, g, o; GRU: r, z, n
                for gate in gates:
                    if name.startswith("weight_hh"):
                        nn.init.orthogonal_(gate, generator=generator)
                    elif name.startswith("weight_ih"):
                        nn.init.xavier_uniform_(gate, generator=generator)
                    else:
                        nn.init.zeros_(gate)
                if self.config.cell == "lstm" and name.startswith("bias_ih"):
                    nn.init.constant_(gates[1], FORGET_BIAS)

    def read(self, x: Tensor, lengths: Tensor) -> Tensor:
        if x.is_cuda:  # there both directions of packed sequences run at once
            known = lengths.clamp(min=1).cpu()  # torch packs no empty rows
            for layer in self.layers:
                x = _run_packed(layer, self.dropout(x), known)
            return x
        for layer in self.layers:
            x = self._read(layer, self.dropout(x), lengths)
        return x

    def _read(self, layer: nn.Module, x: Tensor, lengths: Tensor) -> Tensor:
        # Both directions read padding last, so it affects no real position. Torch's packed
        # sequences give the same numbers, but are slower on the CPU.
        if x.device.type == "cpu" and torch.is_autocast_enabled("cpu"):
            weight = next(layer.parameters())
            with torch.autocast("cpu", enabled=False):
                return self._read(layer, x.to(weight.dtype), lengths)
        # without gradients torch's GRU is as fast as `gru_steps`
        if self.config.cell == "gru" and x.device.type == "cpu" and torch.is_grad_enabled():
            forward, backward = _run_gru(layer, x, lengths)
        else:
            forward = _run(layer, x, "l0")
            backward = _run(layer, reverse_sequences(x, lengths), "l0_reverse")
        return torch.cat([forward, reverse_sequences(backward, lengths)], dim=2)


def _weights(layer: nn.Module, name: str) -> list[Tensor]:
    kinds = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    return [layer.get_parameter(f"{kind}_{name}") for kind in kinds]


def _run(layer: nn.Module, x: Tensor, name: str) -> Tensor:
    weights = _weights(layer, name)
    start = x.new_zeros(1, x.shape[0], weights[1].shape[1])
    rest = (weights, True, 1, 0.0, layer.training, False, True)  # one layer, batch first
    if isinstance(layer, nn.LSTM):
        return torch.lstm(x, (start, start), *rest)[0]
    return torch.gru(x, start, *rest)[0]


def _run_packed(layer: nn.Module, x: Tensor, lengths: Tensor) -> Tensor:
    """Run both directions: (B, T, X) -> (B, T, 2H); ``lengths`` are on the CPU, none is 0."""
    packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    return pad_packed_sequence(layer(packed)[0], batch_first=True, total_length=x.shape[1])[0]


def _run_gru(layer: nn.Module, x: Tensor, lengths: Tensor) -> list[Tensor]:
    """Run both directions of a GRU together: (B, T, X) -> two (B, T, H), the second from the end.

    Both take their gates from one product; the gates are reversed, which are narrower than ELMo.
    """
    names = ("l0", "l0_reverse")
    of_input, of_state, input_bias, state_bias = (
        torch.stack(parts) for parts in zip(*(_weights(layer, name) for name in names), strict=True)
    )
    gates = functional.linear(x, of_input.flatten(0, 1), input_bias.flatten())  # (B, T, 2G)
    ahead, back = gates.chunk(2, dim=2)
    by_step = (one.transpose(0, 1) for one in (ahead, reverse_sequences(back, lengths)))
    gates_in = torch.stack(tuple(by_step), dim=1)  # (T, D, B, G)
    states = gru_steps(gates_in, of_state, state_bias)  # (T, D, B, H)
    return [one.transpose(0, 1) for one in states.unbind(dim=1)]
