"""A biLM as one writes it in PyTorch without further thought: Conv1d, `nn.LSTM(proj_size=…)`.

`nn.LSTM` knows no clipping: results differ from the original's as soon as a value is clipped.
"""

import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from elmokit import BiLM

warnings.filterwarnings("ignore", message="LSTM with projections is not supported with oneDNN")

LayerState = tuple[Tensor, Tensor]


class PlainStack(nn.Module):
    """The weights of one of our models in PyTorch's own modules."""

    def __init__(self, model: BiLM) -> None:
        super().__init__()
        encoder: Any = model.token_encoder
        self.embedding = nn.Embedding.from_pretrained(
            encoder.char_embedding.weight.detach().clone(), freeze=False, padding_idx=0
        )
        self.convolutions = encoder.convolutions
        self.highways = encoder.highways
        self.projection = encoder.projection
        self.directions = nn.ModuleList(
            nn.ModuleList(_lstm(layer) for layer in layers)
            for layers in (model.forward_layers, model.backward_layers)
        )

    def encode_tokens(self, char_ids: Tensor) -> Tensor:
        """(N, C) -> (N, D): every token, over its whole row."""
        x = self.embedding(char_ids).transpose(1, 2)
        x = torch.cat([functional.relu(conv(x).amax(dim=2)) for conv in self.convolutions], dim=1)
        for highway in self.highways:
            gate = torch.sigmoid(highway.carry(x))
            x = gate * functional.relu(highway.transform(x)) + (1 - gate) * x
        return self.projection(x)

    def embed(self, char_ids: Tensor) -> Tensor:
        """(B, T, C), boundaries included -> all layers (L, B, T, 2D)."""
        lengths = (char_ids > 0).any(dim=2).sum(dim=1)
        tokens = self.encode_tokens(char_ids.flatten(0, 1)).unflatten(0, char_ids.shape[:2])
        forward = self._stack(0, tokens, lengths)
        backward = self._stack(1, _reversed(tokens, lengths), lengths)
        layers = [torch.cat((tokens, tokens), dim=2)]
        for ahead, back in zip(forward, backward, strict=True):
            layers.append(torch.cat((ahead, _reversed(back, lengths)), dim=2))
        return torch.stack(layers)

    def _stack(self, direction: int, x: Tensor, lengths: Tensor) -> list[Tensor]:
        outputs = []
        for index, lstm in enumerate(self.directions[direction]):  # pyright: ignore
            packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
            out, _ = pad_packed_sequence(lstm(packed)[0], batch_first=True)
            x = out if index == 0 else out + x
            outputs.append(x)
        return outputs

    def window(
        self, direction: int, x: Tensor, states: Sequence[LayerState], dropout: float
    ) -> tuple[Tensor, list[LayerState]]:
        """Read a training window (B, T, D) in its order; return the top and the new states."""
        new_states = []
        for index, (lstm, state) in enumerate(zip(self.directions[direction], states, strict=True)):  # pyright: ignore
            layer_in = functional.dropout(x, dropout)
            out, (hidden, cell) = lstm(layer_in, state)
            x = out if index == 0 else out + layer_in
            new_states.append((hidden.detach(), cell.detach()))
        return functional.dropout(x, dropout), new_states

    def zero_states(self, num_rows: int) -> list[list[LayerState]]:
        """Return the states before any text, for both directions."""
        return [
            [
                (
                    torch.zeros(1, num_rows, lstm.proj_size),
                    torch.zeros(1, num_rows, lstm.hidden_size),
                )
                for lstm in stack  # pyright: ignore
            ]
            for stack in self.directions
        ]


def _lstm(layer: Any) -> nn.LSTM:
    cell_dim, projection_dim = layer.config.cell_dim, layer.config.projection_dim
    lstm = nn.LSTM(
        layer.input_weight.shape[1], cell_dim, proj_size=projection_dim, batch_first=True
    )
    weights = {
        "weight_ih_l0": layer.input_weight,
        "weight_hh_l0": layer.recurrent_weight,
        "bias_ih_l0": layer.gate_bias(),
        "bias_hh_l0": torch.zeros_like(layer.bias),
        "weight_hr_l0": layer.projection_weight,
    }
    lstm.load_state_dict({name: weight.detach().clone() for name, weight in weights.items()})
    return lstm


def _reversed(x: Tensor, lengths: Tensor) -> Tensor:
    """Turn every row round within its length."""
    steps = torch.arange(x.shape[1])
    index = (lengths[:, None] - 1 - steps).where(steps < lengths[:, None], steps)
    return x.gather(1, index[:, :, None].expand_as(x))
