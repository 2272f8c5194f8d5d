"""The network through the compiled kernels of this processor (`elmokit.native`).

Weights are packed once. What does not recur is outside the recurrence: the input products of a
layer are computed for many positions at once, those of the first layer once per distinct token.
"""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from elmokit.native.kernels import Kernels, Kind, PackedCharCNN, PackedLinear, PackedLSTM
from elmokit.nn.bilm import BiLM, Direction, DirectionState
from elmokit.nn.char_cnn import PADDING_ID, CharTokenEncoder
from elmokit.nn.highway import Highway
from elmokit.nn.lstmp import LSTMP

WORDS_PER_CHUNK = 1024
"""Words that go through the token layer at a time: bounds its memory."""
MAX_GATE_VALUES = 2**24
"""Gate inputs of distinct tokens that are held for a batch: 64 MB."""


class PackedNetwork:
    """A biLM whose weights are packed for the kernels; see `elmokit.embed.network.Network`.

    Args:
        model: On the CPU; it stays as it is.
        precision: How the weights are held.
        kernels: The library.
    """

    def __init__(self, model: BiLM, *, precision: Kind, kernels: Kernels) -> None:
        self.config = model.config
        self.device = torch.device("cpu")
        with torch.no_grad():
            encoder = model.token_encoder
            self._encode = (
                _PackedTokenEncoder(encoder, kernels, precision)
                if isinstance(encoder, CharTokenEncoder)
                else _WordTable(encoder.get_parameter("embedding.weight"))
            )
            stacks = {"forward": model.forward_layers, "backward": model.backward_layers}
            self._stacks = {
                name: [_pack_layer(kernels, layer, precision) for layer in stack]
                for name, stack in stacks.items()
            }

    def encode_tokens(self, ids: np.ndarray) -> Tensor:
        """Run the token layer over distinct tokens."""
        return self._encode(ids)

    def start(
        self, direction: Direction, vectors: Tensor, state: DirectionState
    ) -> "_PackedReader":
        """Return a reader of sentences made of rows of ``vectors``."""
        skip = self.config.lstm.skip_connections
        return _PackedReader(self._stacks[direction], skip, vectors, state)


def _pack_layer(kernels: Kernels, layer: torch.nn.Module, kind: Kind) -> PackedLSTM:
    assert isinstance(layer, LSTMP)
    weights = (
        layer.input_weight.detach(), layer.recurrent_weight.detach(), layer.gate_bias().detach(),
        None if layer.projection_weight is None else layer.projection_weight.detach(),
    )  # fmt: skip
    projection_clip = None if layer.projection_weight is None else layer.config.projection_clip
    return PackedLSTM(
        kernels,
        weights,
        cell_clip=layer.config.cell_clip,
        projection_clip=projection_clip,
        kind=kind,
    )


class _WordTable:
    """The token layer of word-input models."""

    def __init__(self, table: Tensor) -> None:
        self._table = table.detach()

    def __call__(self, ids: np.ndarray) -> Tensor:
        return functional.embedding(torch.from_numpy(ids.astype(np.int64)), self._table)


class _PackedTokenEncoder:
    """Character CNN, highways and projection."""

    def __init__(self, encoder: CharTokenEncoder, kernels: Kernels, kind: Kind) -> None:
        self._cnn = PackedCharCNN(
            kernels,
            encoder.char_embedding.weight.detach(),
            [
                (conv.get_parameter("weight").detach(), conv.get_parameter("bias").detach())
                for conv in encoder.convolutions
            ],
            max_characters=encoder.max_characters,
            activation=encoder.config.activation,
            padding_id=PADDING_ID,
            kind=kind,
        )
        self._layers: list[PackedLinear] = []
        for highway in encoder.highways:
            assert isinstance(highway, Highway)
            both = (highway.transform, highway.carry)
            weight = torch.stack([linear.weight.detach() for linear in both])
            bias = torch.stack([linear.bias.detach() for linear in both])
            self._layers.append(PackedLinear(kernels, weight, bias, kind))
        if encoder.projection is not None:
            last = encoder.projection
            weight, bias = last.weight.detach(), last.bias.detach()
            self._layers.append(PackedLinear(kernels, weight, bias, kind))
        self._dim = encoder.config.num_filters if encoder.projection is None else len(bias)

    def __call__(self, char_ids: np.ndarray) -> Tensor:
        lengths = (char_ids != PADDING_ID).sum(axis=1)
        vectors = torch.empty(len(char_ids), self._dim)
        for start in range(0, len(char_ids), WORDS_PER_CHUNK):
            chunk = slice(start, start + WORDS_PER_CHUNK)
            x = self._cnn(char_ids[chunk], lengths[chunk])
            for layer in self._layers:
                x = layer(x)
            vectors[chunk] = x
        return vectors


class _PackedReader:
    """One direction's stack and its state; see `elmokit.embed.network.Reader`."""

    def __init__(
        self, stack: list[PackedLSTM], skip: bool, vectors: Tensor, state: DirectionState
    ) -> None:
        self._stack, self._skip, self._vectors = stack, skip, vectors
        self._hidden = state[0].clone(memory_format=torch.contiguous_format)
        padding = stack[0].padded_cell_dim - stack[0].cell_dim
        self._cell = functional.pad(state[1], (0, padding)).contiguous()
        if not padding:
            self._cell = state[1].clone(memory_format=torch.contiguous_format)
        holds_all = len(vectors) * 4 * stack[0].padded_cell_dim <= MAX_GATE_VALUES
        self._gates = stack[0].input(vectors) if holds_all else None  # (U, 4H)

    def read(self, index: np.ndarray, num_rows: np.ndarray) -> Iterator[Tensor]:
        """Yield the outputs of each layer, (P, D)."""
        counts = np.ascontiguousarray(num_rows, dtype=np.int64)
        gates_row: np.ndarray | None = np.ascontiguousarray(index, dtype=np.int64)
        gates = self._gates
        if gates is None:  # too many distinct tokens to hold: those of this chunk
            distinct, gates_row = np.unique(index, return_inverse=True)
            gates = self._stack[0].input(self._vectors[torch.from_numpy(distinct)])
        x: Tensor | None = None
        for n, layer in enumerate(self._stack):
            if x is not None:
                gates, gates_row = layer.input(x), None
            x = layer(
                gates,
                counts,
                self._hidden[n],
                self._cell[n],
                gates_row=gates_row,
                residual=x if self._skip else None,
            )
            yield x

    def state(self) -> DirectionState:
        """Return the state after what was read."""
        return self._hidden, self._cell[:, :, : self._stack[0].cell_dim]
