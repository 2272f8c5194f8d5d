"""The network in NumPy, for machines without compiled kernels: the same values, more slowly.

The height of every matrix product is a multiple of a block, so that the BLAS adds the products of a
row in the same order whatever the batch, and a sentence gets the same bits in any of them.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from elmokit.bilm.config import FORGET_OFFSET, BiLMConfig, padding_id
from elmokit.inference.engine import Engine
from elmokit.inference.layers_and_states import DirectionState, OutputSlots
from elmokit.shapes import Float

Arrays = Mapping[str, np.ndarray]
ROW_BLOCK = 8
MAX_GATE_VALUES = 2**22
"""Gate inputs held at a time: 16 MB."""
MAX_RESPONSES = 2**20
"""Answers of a filter held at a time: 4 MB."""


class NumPyEngine(Engine):
    """An engine in fp32; ``arrays`` are a biLM's parameters."""

    def __init__(self, config: BiLMConfig, arrays: Arrays) -> None:
        super().__init__(config, partial(_Layer, config, arrays))
        self.computed_by = f"NumPy {np.__version__}"
        self.max_positions = max(1, MAX_GATE_VALUES // (4 * config.lstm.cell_dim))
        self.reader = BlockReader
        if config.char_cnn is None:
            self.encode_tokens = arrays["token_encoder.embedding.weight"].copy().__getitem__
        else:
            self.encode_tokens = _TokenEncoder(config, arrays)


class _TokenEncoder:
    """Character CNN, highways and projection, before which a word's vector may be put."""

    def __init__(self, config: BiLMConfig, arrays: Arrays) -> None:
        assert config.char_cnn is not None
        names = [name for name in arrays if name.startswith("token_encoder.")]
        weights = {name.removeprefix("token_encoder."): arrays[name].copy() for name in names}
        self._cnn, self._length = config.char_cnn, config.char_vocab.max_characters
        self._padding_id, self._weights = padding_id(config.lexicon), weights
        characters = weights["char_embedding.weight"]
        # what a character adds to the answers of a filter at each place of its window (width, 262,
        # filters): products of many rows become sums of few table rows
        kernels = (weights[f"convolutions.{n}.weight"] for n in range(len(self._cnn.filters)))
        self._tables = [characters @ kernel.transpose(2, 1, 0) for kernel in kernels]
        self._words = weights.get("word_embedding.weight")
        last = weights.get("projection.bias")
        self._dim = self._cnn.num_filters if last is None else len(last)

    def __call__(self, ids: np.ndarray) -> Float[np.ndarray, "U D"]:
        char_ids, word_ids = ids[:, : self._length], ids[:, -1]
        real = (char_ids != self._padding_id).sum(axis=1)
        widest = max(width for width, _ in self._cnn.filters)
        # all windows of padding give a filter the same answer, so one of them is enough
        columns = np.minimum(real + widest, self._length)
        order = np.argsort(columns, kind="stable")
        vectors = np.empty((len(ids), self._dim), dtype=np.float32)
        largest = max(count for _, count in self._cnn.filters)
        start = 0
        while start < len(order):
            height = max(1, MAX_RESPONSES // (largest * int(columns[order[start]])))
            rows = order[start : start + height]
            x = self._pooled(char_ids[rows, : columns[rows[-1]]])
            vectors[rows] = self._finished(x, word_ids[rows])
            start += height
        return vectors

    def _pooled(self, char_ids: np.ndarray) -> Float[np.ndarray, "U F"]:
        pooled = []
        for number, (width, _) in enumerate(self._cnn.filters):
            num_windows = char_ids.shape[1] - width + 1
            answers = self._tables[number][0][char_ids[:, :num_windows]]  # (U, windows, filters)
            for place in range(1, width):
                answers += self._tables[number][place][char_ids[:, place : place + num_windows]]
            bias = self._weights[f"convolutions.{number}.bias"]
            pooled.append(answers.max(axis=1) + bias)
        x = np.concatenate(pooled, axis=1)
        return np.maximum(x, 0) if self._cnn.activation == "relu" else np.tanh(x)

    def _finished(self, x: np.ndarray, word_ids: np.ndarray) -> Float[np.ndarray, "U D"]:
        for number in range(self._cnn.num_highway):
            transform, carry = (
                self._linear(x, f"highways.{number}.{part}") for part in ("transform", "carry")
            )
            gate = _sigmoid(carry)
            x = gate * np.maximum(transform, 0) + (1 - gate) * x
        if self._words is not None:
            x = np.concatenate((self._words[word_ids], x), axis=1)
        if "projection.weight" in self._weights:
            x = self._linear(x, "projection")
        return x

    def _linear(self, x: np.ndarray, name: str) -> np.ndarray:
        return linear(x, self._weights[f"{name}.weight"], self._weights[f"{name}.bias"])


class _Layer:
    """One LSTM layer; the sigmoids of its gates are taken as ``tanh(x / 2) / 2 + 1 / 2``."""

    def __init__(self, config: BiLMConfig, arrays: Arrays, name: str) -> None:
        self.config, cell_dim = config.lstm, config.lstm.cell_dim
        bias = arrays[f"{name}.bias"].copy()
        bias[cell_dim : 2 * cell_dim] += np.float32(FORGET_OFFSET)
        # sigmoid(x) = tanh(x / 2) / 2 + 1 / 2: the halves of x are taken into the weights once
        halves = np.full((4, cell_dim), 0.5, dtype=np.float32)
        halves[2] = 1  # g has no sigmoid
        halves = halves.reshape(-1)
        self._bias = bias * halves
        self._input = np.ascontiguousarray((arrays[f"{name}.input_weight"].T) * halves)
        self._recurrent = np.ascontiguousarray((arrays[f"{name}.recurrent_weight"].T) * halves)
        weight = arrays.get(f"{name}.projection_weight")
        self._projection = None if weight is None else np.ascontiguousarray(weight.T)

    def __call__(
        self, x: np.ndarray, num_rows: np.ndarray, hidden: np.ndarray, cell: np.ndarray
    ) -> np.ndarray:
        """Run over a chunk of packed inputs, updating hidden and cell in place.

        Rows that only fill a block read the gate inputs of the next step, or the padding after the
        last one; their results are discarded.
        """
        gates_in = x @ self._input + self._bias  # (P + some, 4H)
        outputs = np.zeros((len(x), hidden.shape[1]), dtype=np.float32)
        start = 0
        for n in num_rows.tolist():
            height = _whole_blocks(n)
            gates = hidden[:height] @ self._recurrent
            gates += gates_in[start : start + height]
            np.tanh(gates, out=gates)
            i, f, g, o = gates.reshape(height, 4, -1).swapaxes(0, 1)
            new_cell = (f * np.float32(0.5) + np.float32(0.5)) * cell[:height]
            new_cell += (i * np.float32(0.5) + np.float32(0.5)) * g
            if (bound := self.config.cell_clip) is not None:
                np.clip(new_cell, -bound, bound, out=new_cell)
            new_hidden = (o * np.float32(0.5) + np.float32(0.5)) * np.tanh(new_cell)
            if self._projection is not None:
                new_hidden = new_hidden @ self._projection
                if (bound := self.config.projection_clip) is not None:
                    np.clip(new_hidden, -bound, bound, out=new_hidden)
            outputs[start : start + n] = hidden[:n] = new_hidden[:n]
            cell[:n] = new_cell[:n]
            start += n
        return outputs


class BlockReader:
    """A `Reader` whose products have whole blocks of rows.

    ``layers`` run over (x, rows of each step, hidden, cell) and update the last two in place.
    ``load`` and ``store`` bring arrays to where they compute, and back.
    """

    def __init__(
        self,
        layers: Sequence[Callable[..., Any]],
        skip: bool,
        vectors: np.ndarray,
        state: DirectionState,
        *,
        load: Callable[[np.ndarray], Any] = np.asarray,
        store: Callable[[Any], np.ndarray] = np.asarray,
    ) -> None:
        self._layers, self._skip, self._load, self._store = layers, skip, load, store
        self._num_sentences = state[0].shape[1]
        padding = ((0, 0), (0, -self._num_sentences % ROW_BLOCK), (0, 0))
        self._vectors = load(vectors)
        self._hidden, self._cell = (list(map(load, np.pad(part, padding))) for part in state)

    def read(
        self, index: np.ndarray, num_rows: np.ndarray, slots: OutputSlots | None
    ) -> np.ndarray:
        # a block of the last step may reach beyond the last row, so there is one more block
        padded = np.zeros(_whole_blocks(len(index)) + ROW_BLOCK, dtype=np.int64)
        padded[: len(index)] = index
        x = self._vectors[self._load(padded)]  # (P + some, D)
        for n, layer in enumerate(self._layers):
            outputs = layer(x, num_rows, self._hidden[n], self._cell[n])
            x = outputs + x if self._skip and n > 0 else outputs
            if slots is not None:
                slots.add(n + 1, self._store(x))
        return self._store(x)[: len(index)]

    def state(self) -> DirectionState:
        rows = slice(0, self._num_sentences)
        hidden, cell = (np.stack(list(map(self._store, p))) for p in (self._hidden, self._cell))
        return hidden[:, rows], cell[:, rows]


def linear(x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """Return x W^T + b; x is filled up to whole blocks of rows for the product."""
    filled = np.zeros((_whole_blocks(len(x)), x.shape[1]), dtype=np.float32)
    filled[: len(x)] = x
    return (filled @ weight.T)[: len(x)] + bias


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return np.tanh(x * np.float32(0.5)) * np.float32(0.5) + np.float32(0.5)


def _whole_blocks(num_rows: int) -> int:
    return -(-num_rows // ROW_BLOCK) * ROW_BLOCK
