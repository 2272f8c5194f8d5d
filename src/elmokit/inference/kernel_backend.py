"""The network through compiled CPU kernels (`elmokit.kernels`), with weights packed once."""

from collections.abc import Mapping
from functools import partial

import numpy as np

from elmokit.bilm.config import FORGET_OFFSET, BiLMConfig, LSTMConfig, padding_id
from elmokit.inference.engine import Engine
from elmokit.inference.layers_and_states import DirectionState, OutputSlots
from elmokit.kernels.layers import (
    PackedCharCNN,
    PackedLinear,
    PackedLSTM,
    ScratchBuffers,
    fp32_empty,
)
from elmokit.kernels.library import Kernels, MatrixKind

Arrays = Mapping[str, np.ndarray]
_ENCODER = "token_encoder."
_HIGHWAY_PARTS = ("transform", "carry")
WORDS_PER_CHUNK = 1024
"""Words in one call of the token layer; bounds its memory."""
MAX_POSITIONS = 2**13
"""Positions that are read at a time; bounds the memory."""


class PackedEngine(Engine):
    """An engine with weights packed for the kernels; ``arrays`` are a biLM's parameters."""

    def __init__(
        self, config: BiLMConfig, arrays: Arrays, *, precision: MatrixKind, kernels: Kernels
    ) -> None:
        pack = partial(_pack_layer, config.lstm, arrays, kernels, precision, ScratchBuffers())
        super().__init__(config, pack)
        self.precision = precision
        unit = " and the matrix unit" if kernels.has_matrix_unit and precision != "fp32" else ""
        self.computed_by = f"kernels of {kernels.vector_length} values{unit}"
        self.max_positions = MAX_POSITIONS
        self.reader = _PackedReader
        if config.char_cnn is None:
            self.encode_tokens = arrays["token_encoder.embedding.weight"].copy().__getitem__
        else:
            self.encode_tokens = _PackedTokenEncoder(config, arrays, kernels, precision)


def _pack_layer(
    config: LSTMConfig, arrays: Arrays, kernels: Kernels, kind: MatrixKind, buffers: ScratchBuffers,
    name: str,
) -> PackedLSTM:  # fmt: skip
    bias = arrays[f"{name}.bias"].copy()
    bias[config.cell_dim : 2 * config.cell_dim] += np.float32(FORGET_OFFSET)
    weights = (
        arrays[f"{name}.input_weight"], arrays[f"{name}.recurrent_weight"], bias,
        arrays.get(f"{name}.projection_weight"),
    )  # fmt: skip
    return PackedLSTM(kernels, weights, config, kind=kind, buffers=buffers)


class _PackedTokenEncoder:
    """Character CNN, highways and projection, before which a word's vector may be put."""

    def __init__(
        self, config: BiLMConfig, arrays: Arrays, kernels: Kernels, kind: MatrixKind
    ) -> None:
        cnn = config.char_cnn
        assert cnn is not None
        names = [name for name in arrays if name.startswith(_ENCODER)]
        weights = {name.removeprefix(_ENCODER): arrays[name] for name in names}
        self._max_characters = config.char_vocab.max_characters
        self._padding_id = padding_id(config.lexicon)
        convolutions = [
            (weights[f"convolutions.{n}.weight"], weights[f"convolutions.{n}.bias"])
            for n in range(len(cnn.filters))
        ]
        self._cnn = PackedCharCNN(
            kernels, weights["char_embedding.weight"], convolutions,
            max_characters=self._max_characters, activation=cnn.activation,
            padding_id=self._padding_id, kind=kind,
        )  # fmt: skip
        self._layers: list[PackedLinear] = []
        for n in range(cnn.num_highway):
            weight, bias = (
                np.stack([weights[f"highways.{n}.{part}.{name}"] for part in _HIGHWAY_PARTS])
                for name in ("weight", "bias")
            )
            self._layers.append(PackedLinear(kernels, weight, bias, kind))
        if (weight := weights.get("projection.weight")) is not None:
            self._layers.append(PackedLinear(kernels, weight, weights["projection.bias"], kind))
        table = weights.get("word_embedding.weight")
        self._words = None if table is None else table.copy()
        self._buffers = ScratchBuffers()
        self._dim = self._layers[-1].columns if self._layers else cnn.num_filters

    def __call__(self, char_ids: np.ndarray) -> np.ndarray:
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
                    x = np.concatenate((self._words[word_ids[chunk]], x), axis=1)
                x = layer(x, self._buffers.take(f"filters {n % 2}", rows, layer.columns))
            vectors[chunk] = x
        return vectors


class _PackedReader:
    def __init__(
        self, stack: list[PackedLSTM], skip: bool, vectors: np.ndarray, state: DirectionState
    ) -> None:
        self._stack, self._skip, self._vectors = stack, skip, vectors
        self._hidden = np.array(state[0], order="C")  # a copy (N, B, D)
        self._cells = [layer.pack_cell(cell) for layer, cell in zip(stack, state[1], strict=True)]

    def read(
        self, index: np.ndarray, num_rows: np.ndarray, slots: OutputSlots | None
    ) -> np.ndarray:
        """Read some steps; the kernel writes results straight to their place."""
        counts = np.ascontiguousarray(num_rows, dtype=np.int64)
        x = self._vectors[index]  # (P, D)
        for n, layer in enumerate(self._stack):
            targets = None if slots is None else slots.addresses(n + 1)
            skip = self._skip and n > 0
            x = layer(x, counts, self._hidden[n], self._cells[n], skip=skip, targets=targets)
            if slots is not None and slots.results.layers == "average":
                slots.add(n + 1, x)
        return x

    def state(self) -> DirectionState:
        pairs = zip(self._stack, self._cells, strict=True)
        return self._hidden, np.stack([layer.unpack_cell(cell) for layer, cell in pairs])
