"""The network through compiled CPU kernels (`elmokit.kernels`), with weights packed once."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from elmokit.bilm.bilm import BiLM, Direction, DirectionState
from elmokit.bilm.char_cnn import CharTokenEncoder, Highway
from elmokit.bilm.lstmp import LSTMP, LSTMWeights
from elmokit.inference.backend import Precision
from elmokit.inference.results import OutputSlots
from elmokit.kernels.buffers import fp32_empty
from elmokit.kernels.inference import Kernels
from elmokit.kernels.layers import PackedCharCNN, PackedLinear, PackedLSTM, ScratchBuffers
from elmokit.kernels.library import Kind

WORDS_PER_CHUNK = 1024
"""Words in one call of the token layer; bounds its memory."""
MAX_POSITIONS = 2**13
"""Positions that are read at a time; bounds the memory."""


class PackedNetwork:
    """A `Network` with weights packed for the kernels; ``model`` may be on any device."""

    def __init__(self, model: BiLM, *, precision: Kind, kernels: Kernels) -> None:
        self.config = model.config
        self.device = torch.device("cpu")
        self.precision: Precision = precision
        unit = " and the matrix unit" if kernels.has_matrix_unit and precision != "fp32" else ""
        self.computed_by = f"kernels of {kernels.vector_length} values{unit}"
        self.max_positions = MAX_POSITIONS
        self._buffers = ScratchBuffers()
        with torch.no_grad():
            encoder = model.token_encoder
            self._encode = (
                _PackedTokenEncoder(encoder, kernels, precision)
                if isinstance(encoder, CharTokenEncoder)
                else _word_table(_values(encoder.get_parameter("embedding.weight")))
            )
            stacks = {"forward": model.forward_layers, "backward": model.backward_layers}
            self._stacks = {
                name: [_pack_layer(kernels, layer, precision, self._buffers) for layer in stack]
                for name, stack in stacks.items()
            }

    def encode_tokens(self, ids: np.ndarray) -> Tensor:
        """Run the token layer."""
        return self._encode(ids)

    def start(
        self, direction: Direction, vectors: Tensor, state: DirectionState
    ) -> "_PackedReader":
        """Return a reader."""
        skip = self.config.lstm.skip_connections
        return _PackedReader(self._stacks[direction], skip, vectors, state)


def _values(tensor: Tensor) -> Tensor:
    return tensor.detach().to("cpu", torch.float32).contiguous()


def _pack_layer(
    kernels: Kernels, layer: torch.nn.Module, kind: Kind, buffers: ScratchBuffers
) -> PackedLSTM:
    assert isinstance(layer, LSTMP)
    weights = (None if weight is None else _values(weight) for weight in layer.weights())
    return PackedLSTM(kernels, LSTMWeights(*weights), layer.config, kind=kind, buffers=buffers)  # pyright: ignore[reportArgumentType]


def _word_table(table: Tensor) -> Callable[[np.ndarray], Tensor]:
    return lambda ids: functional.embedding(torch.from_numpy(ids.astype(np.int64)), table)


class _PackedTokenEncoder:
    """Character CNN, highways and projection, before which a word's vector may be put."""

    def __init__(self, encoder: CharTokenEncoder, kernels: Kernels, kind: Kind) -> None:
        self._cnn = PackedCharCNN(
            kernels,
            _values(encoder.char_embedding.weight),
            [
                (_values(conv.get_parameter("weight")), _values(conv.get_parameter("bias")))
                for conv in encoder.convolutions
            ],
            max_characters=encoder.max_characters,
            activation=encoder.config.activation,
            padding_id=encoder.padding_id,
            kind=kind,
        )
        self._layers: list[PackedLinear] = []
        for highway in encoder.highways:
            assert isinstance(highway, Highway)
            both = (highway.transform, highway.carry)
            weight = torch.stack([_values(linear.weight) for linear in both])
            bias = torch.stack([_values(linear.bias) for linear in both])
            self._layers.append(PackedLinear(kernels, weight, bias, kind))
        if encoder.projection is not None:
            last = encoder.projection
            weight, bias = _values(last.weight), _values(last.bias)
            self._layers.append(PackedLinear(kernels, weight, bias, kind))
        self._words = None
        if encoder.word_embedding is not None:
            self._words = _word_table(_values(encoder.word_embedding.weight))
        self._max_characters, self._padding_id = encoder.max_characters, encoder.padding_id
        self._buffers = ScratchBuffers()
        self._dim = self._layers[-1].columns if self._layers else encoder.config.num_filters

    def __call__(self, char_ids: np.ndarray) -> Tensor:
        word_ids = char_ids[:, -1]  # with a lexicon
        char_ids = char_ids[:, : self._max_characters]
        lengths = (char_ids != self._padding_id).sum(axis=1)
        vectors = fp32_empty(len(char_ids), self._dim)
        for start in range(0, len(char_ids), WORDS_PER_CHUNK):
            chunk = slice(start, start + WORDS_PER_CHUNK)
            rows = len(char_ids[chunk])
            x = self._buffers.take("filters 0", rows, self._cnn.num_filters)
            x = self._cnn(char_ids[chunk], lengths[chunk], x)
            for n, layer in enumerate(self._layers, start=1):
                if self._words is not None and n == len(self._layers):
                    x = torch.cat((self._words(word_ids[chunk]), x), dim=1)
                x = layer(x, self._buffers.take(f"filters {n % 2}", rows, layer.columns))
            vectors[chunk] = x
        return vectors


class _PackedReader:
    """A `Reader`: one direction's stack and its state."""

    def __init__(
        self, stack: list[PackedLSTM], skip: bool, vectors: Tensor, state: DirectionState
    ) -> None:
        self._stack, self._skip, self._vectors = stack, skip, vectors
        self._hidden = state[0].clone(memory_format=torch.contiguous_format)  # (N, B, D)
        self._cells = [layer.pack_cell(cell) for layer, cell in zip(stack, state[1], strict=True)]

    def read(self, index: np.ndarray, num_rows: np.ndarray, slots: OutputSlots | None) -> Tensor:
        """Read some steps; the kernel writes results straight to their place."""
        counts = np.ascontiguousarray(num_rows, dtype=np.int64)
        x = torch.from_numpy(self._vectors.numpy()[index])  # (P, D)
        for n, layer in enumerate(self._stack):
            x = layer(
                x,
                counts,
                self._hidden[n],
                self._cells[n],
                skip=self._skip and n > 0,
                targets=None if slots is None else slots.addresses(n + 1),
            )
            if slots is not None and slots.results.layers == "average":
                slots.add(n + 1, x)
        return x

    def state(self) -> DirectionState:
        """Return hidden and cell."""
        pairs = zip(self._stack, self._cells, strict=True)
        return self._hidden, torch.stack([layer.unpack_cell(cell) for layer, cell in pairs])
