"""LSTM states, the result arrays, and where in them the values of a chunk of steps belong."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np

from elmokit.bilm.config import Direction, LSTMConfig
from elmokit.errors import InputError, is_number
from elmokit.shapes import Float, Integer

_WORDS_TOGETHER = 4096  # of the token layer of a long sentence

Layers = Literal["all", "top", "average"] | int
"""Layers to return: all, the last, their plain mean, or one by its number."""


def check_layers(layers: object, num_layers: int) -> Layers:
    """Return ``layers``; raise `InputError` with the choices if a model of L layers lacks them.

    A number may be one of NumPy's.
    """
    if is_number(layers, whole=True) and 0 <= int(cast(int, layers)) < num_layers:
        return int(cast(int, layers))
    if isinstance(layers, str) and layers in ("all", "top", "average"):
        return cast(Layers, layers)
    raise InputError(
        f'`layers` must be "all", "top", "average" or a number from 0 (the token layer) to '
        f"{num_layers - 1} for this model, got {layers!r}."
    )


def check_one_layer(layers: object) -> None:
    """Raise `InputError` for ``"all"``, where one vector per word is needed."""
    if layers == "all":
        raise InputError('`layers` must be "top", "average" or a number here, got "all".')


class Results:
    """The vectors of some sentences, filled piece by piece; L includes the token layer.

    ``lengths`` count the boundaries; only with ``boundaries`` have these vectors, too.
    """

    def __init__(
        self,
        lengths: Integer[np.ndarray, " B"],
        layers: Layers,
        *,
        num_layers: int,
        dim: int,
        boundaries: bool = False,
    ) -> None:
        self.margin = 0 if boundaries else 1
        """Positions at each end of a sentence that are dropped."""
        self.num_words, self.layers = lengths - 2 * self.margin, layers
        self.num_layers, self.dim = num_layers, dim
        leading = (num_layers,) if layers == "all" else ()
        make = np.zeros if layers == "average" else np.empty
        self.arrays: list[np.ndarray] = [
            make((*leading, int(n), 2 * dim), dtype=np.float32) for n in self.num_words
        ]
        self.starts = np.array([array.ctypes.data for array in self.arrays], dtype=np.int64)
        """Addresses of the arrays (B,)."""

    def wants(self, layer: int) -> bool:
        """Return whether ``layer`` contributes to the result."""
        wanted = self.num_layers - 1 if self.layers == "top" else self.layers
        return wanted in ("all", "average") or wanted == layer

    def add(
        self, sentence: int, layer: int, half: int, start: int, values: Float[np.ndarray, "W D"]
    ) -> None:
        """Store the vectors of words ``start``, … in one half of a layer."""
        array = self.arrays[sentence]
        target = array[layer] if self.layers == "all" else array
        place = target[start : start + len(values), half * self.dim : (half + 1) * self.dim]
        if self.layers == "average":
            place += values / np.float32(self.num_layers)
        else:
            place[...] = values

    def add_token_layer(
        self, vectors: Float[np.ndarray, "U D"], sentences: Sequence[Integer[np.ndarray, " _"]]
    ) -> None:
        """Store the token layer, if wanted, in both halves."""
        for sentence, tokens in enumerate(sentences if self.wants(0) else ()):
            words = tokens[self.margin : len(tokens) - self.margin]
            for start in range(0, len(words), _WORDS_TOGETHER):  # of a long sentence
                values = vectors[words[start : start + _WORDS_TOGETHER]]
                for half in (0, 1):
                    self.add(sentence, 0, half, start, values)


@dataclass(frozen=True)
class OutputSlots:
    """Destination of the values of packed positions: of the first step, of the second, …."""

    results: Results
    half: int
    """0 forward, 1 backward."""
    sentence: Integer[np.ndarray, " P"]
    word: Integer[np.ndarray, " P"]
    """Index in the sentence; -1 and the number of words are its boundaries, which are dropped."""

    def addresses(self, layer: int) -> Integer[np.ndarray, " P"] | None:
        """Return the address for each position's D values, 0 where they are dropped.

        None if they cannot simply be written: the layer is not wanted, or the mean is.
        """
        results = self.results
        if results.layers == "average" or not results.wants(layer):
            return None
        num_words = results.num_words[self.sentence]
        # an array is (L, W, 2D) in C order: rows of 2 * dim values of 4 bytes, D for each half
        row = self.word + (layer * num_words if results.layers == "all" else 0)
        addresses = results.starts[self.sentence] + 4 * results.dim * (2 * row + self.half)
        is_word = (self.word >= 0) & (self.word < num_words)
        return np.where(is_word, addresses, 0)

    def add(self, layer: int, values: Float[np.ndarray, "P_ D"]) -> None:
        """Store ``values`` in ``layer``; rows beyond P are ignored."""
        if not self.results.wants(layer):
            return
        # packed positions come step by step; each sentence's words are put side by side
        order = np.lexsort((self.word, self.sentence))
        order = order[self.word[order] >= 0]
        order = order[self.word[order] < self.results.num_words[self.sentence[order]]]
        if not len(order):
            return
        sorted_values = values[order]
        cuts = np.flatnonzero(np.diff(self.sentence[order])) + 1
        for piece, index in zip(np.split(sorted_values, cuts), np.split(order, cuts), strict=True):
            sentence, start = int(self.sentence[index[0]]), int(self.word[index[0]])
            self.results.add(sentence, layer, self.half, start, piece)


DirectionState = tuple[np.ndarray, np.ndarray]
"""(hidden (N, B, D), cell (N, B, H)) of one direction."""
StartState = Literal["warm", "reset"]
"""What the LSTMs start a sentence from: the average after some neutral text, or zeros."""


@dataclass(frozen=True)
class LSTMState:
    """Memory of B rows of text: row *k* of the next batch continues from row *k*.

    ``hidden`` is the projected, clipped output before the skip connection is added.
    """

    hidden: Float[np.ndarray, "N 2 B D"]
    """Axis 1: 0 forward, 1 backward."""
    cell: Float[np.ndarray, "N 2 B H"]

    @classmethod
    def zeros(cls, config: LSTMConfig, num_rows: int) -> "LSTMState":
        shape = (config.num_layers, 2, num_rows)
        return cls(
            np.zeros((*shape, config.projection_dim), np.float32),
            np.zeros((*shape, config.cell_dim), np.float32),
        )

    @classmethod
    def from_directions(cls, forward: DirectionState, backward: DirectionState) -> "LSTMState":
        hidden, cell = (np.stack(pair, axis=1) for pair in zip(forward, backward, strict=True))
        return cls(hidden, cell)

    @classmethod
    def of(cls, state: Any) -> "LSTMState":
        """Return a state, or what the modules have as one, as arrays on the CPU."""
        if isinstance(state, LSTMState):
            return state
        return cls(*(part.detach().float().cpu().numpy() for part in (state.hidden, state.cell)))

    @property
    def num_rows(self) -> int:
        return self.hidden.shape[2]

    def direction(self, direction: Direction) -> DirectionState:
        """Return (hidden (N, B, D), cell (N, B, H)) of one direction."""
        index = 0 if direction == "forward" else 1
        return self.hidden[:, index], self.cell[:, index]

    def repeated(self, num_rows: int) -> "LSTMState":
        parts = (part[:, :, :1].repeat(num_rows, axis=2) for part in (self.hidden, self.cell))
        return LSTMState(*parts)

    def with_more_rows(self, num_rows: int) -> "LSTMState":
        """Return a copy with zero rows added to have at least ``num_rows``."""
        missing = num_rows - self.num_rows
        if missing <= 0:
            return LSTMState(self.hidden.copy(), self.cell.copy())
        padding = ((0, 0), (0, 0), (0, missing), (0, 0))
        return LSTMState(np.pad(self.hidden, padding), np.pad(self.cell, padding))
