"""The network over a batch of sentences without padding: the same results as `BiLM.forward`.

Sentences are sorted by descending length, and the batch of a step shrinks as they end. The input
products of a layer are computed before the recurrence for many positions at once, in chunks that
bound the memory. A backend computes them, with the same bits for a row in any batch.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, get_args

import numpy as np

from elmokit.bilm.config import BiLMConfig, Direction
from elmokit.errors import InputError
from elmokit.inference.layers_and_states import (
    DirectionState,
    Layers,
    LSTMState,
    OutputSlots,
    Results,
)
from elmokit.kernels.library import MatrixKind
from elmokit.shapes import Float, Integer

OnOutputs = Callable[[np.ndarray, np.ndarray, np.ndarray], None]
"""(outputs (P, D), sentence of each row (P,), its position in that sentence (P,))."""


class Reader(Protocol):
    """Reads a batch in one direction, chunk after chunk, keeping its LSTM state between them."""

    def read(
        self, index: np.ndarray, num_rows: np.ndarray, slots: OutputSlots | None
    ) -> Float[np.ndarray, "P D"]:
        """Read some steps; store the outputs of every layer in ``slots``, return the last one's.

        ``index`` are rows of the token vectors, packed: those of the first step, of the second, …;
        ``num_rows`` the sentences that are still running at each step, never rising.
        """
        ...

    def state(self) -> DirectionState: ...


@dataclass(frozen=True)
class EngineOutput:
    vectors: list[np.ndarray]
    """For each sentence float32 (L, W, 2D), or (W, 2D) if not all layers are wanted."""
    state: LSTMState
    """LSTM state after each sentence; rows beyond the batch are unchanged."""


class Engine:
    """A biLM ready for inference, in some precision on some device; backends are subclasses.

    ``build_layer`` makes the LSTM layer whose parameters begin with a name.
    """

    device: str = "cpu"
    precision: MatrixKind = "fp32"
    computed_by: str
    """Name of the implementation; results of two of them differ in the last bits."""
    max_positions: int
    """Approximate number of positions to read at a time; bounds the memory."""
    encode_tokens: Callable[[np.ndarray], np.ndarray]
    """Runs the token layer: ids (U, ...) -> (U, D). A token's vector does not depend on the others,
    to the last bit."""
    reader: Callable[..., Reader]
    """Makes a reader of layers, whether they have skip connections, token vectors and a state."""

    def __init__(self, config: BiLMConfig, build_layer: Callable[[str], Any]) -> None:
        self.config = config
        self._layers = {
            direction: [
                build_layer(f"{direction}_layers.{number}")
                for number in range(config.lstm.num_layers)
            ]
            for direction in get_args(Direction)
        }

    def run(
        self,
        vectors: Float[np.ndarray, "U D"],
        sentences: Sequence[Integer[np.ndarray, " _"]],
        *,
        layers: Layers = "all",
        state: LSTMState | None = None,
        boundaries: bool = False,
    ) -> EngineOutput:
        """Read sentences, given as rows of ``vectors`` with boundaries, in both directions.

        Row *k* of ``state`` is the LSTM state before sentence *k*; sentences without a row start at
        zero, rows beyond the batch are returned unchanged. ``boundaries`` returns the vectors of
        ``<S>`` and ``</S>``, too.
        """
        state = self._grown(state, len(sentences))
        lengths = np.array([len(sentence) for sentence in sentences], dtype=np.int64)
        lstm = self.config.lstm
        num_layers, dim = lstm.num_layers + 1, lstm.projection_dim
        results = Results(lengths, layers, num_layers=num_layers, dim=dim, boundaries=boundaries)
        results.add_token_layer(vectors, sentences)
        for direction in get_args(Direction):
            # views of the state, whose rows beyond the batch are kept
            hidden, cell = (part[:, : len(sentences)] for part in state.direction(direction))
            hidden[:], cell[:] = self.read(
                direction, vectors, sentences, (hidden, cell), results=results
            )
        return EngineOutput(results.arrays, state)

    def read(
        self,
        direction: Direction,
        vectors: Float[np.ndarray, "U D"],
        sentences: Sequence[Integer[np.ndarray, " _"]],
        state: DirectionState,
        *,
        results: Results | None = None,
        on_top: OnOutputs | None = None,
    ) -> DirectionState:
        """Read sentences in one direction and return the state after each.

        They are rows of ``vectors`` in text order; ``state`` is (hidden (N, B, D), cell (N, B, H))
        before each. ``results`` receives the outputs of the wanted layers; ``on_top`` is called
        with those of the last one, chunk by chunk.
        """
        lengths = np.array([len(sentence) for sentence in sentences], dtype=np.int64)
        # by falling length, so that the running sentences of every step are the first rows
        order = np.argsort(-lengths, kind="stable")
        is_ordered = bool((lengths[1:] <= lengths[:-1]).all())  # reordering takes 4 % of the time
        if not is_ordered:
            state = state[0][:, order], state[1][:, order]
        skip = self.config.lstm.skip_connections
        reader = self.reader(self._layers[direction], skip, vectors, state)
        # all tokens on end, sentence after sentence; ``first`` is where each begins
        lengths = lengths[order]
        tokens = np.concatenate([np.zeros(0, dtype=np.int64), *(sentences[i] for i in order)])
        first = np.cumsum(lengths) - lengths
        for num_rows, rows, step in _cut(lengths, self.max_positions):
            position = step if direction == "forward" else lengths[rows] - 1 - step
            sentence = order[rows]
            half = 0 if direction == "forward" else 1
            slots = None
            if results is not None:
                slots = OutputSlots(results, half, sentence, position - results.margin)
            outputs = reader.read(tokens[first[rows] + position], num_rows, slots)
            if on_top is not None:
                on_top(outputs, sentence, position)
        hidden, cell = reader.state()
        if is_ordered:
            return hidden, cell
        # the inverse of a permutation is what sorts it
        back = np.argsort(order)
        return hidden[:, back], cell[:, back]

    def _grown(self, state: LSTMState | None, num_rows: int) -> LSTMState:
        """Return a copy of ``state`` with at least ``num_rows`` rows, the new ones zero."""
        lstm = self.config.lstm
        if state is None:
            return LSTMState.zeros(lstm, num_rows)
        expected = (lstm.num_layers, 2, lstm.projection_dim, lstm.cell_dim)
        actual = (*state.hidden.shape[:2], state.hidden.shape[-1], state.cell.shape[-1])
        if actual != expected:
            raise InputError(f"`state` is from another model: expected {expected}, got {actual}.")
        return state.with_more_rows(num_rows)


def _cut(
    lengths: np.ndarray, max_positions: int
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Cut the steps of sentences of falling length into chunks of about P positions.

    A chunk is packed: the rows of its first step, of the second, …. Yield the sentences that are
    still running at each step, and row and step of each packed value (P,).
    """
    start, last = 0, int(lengths[0]) if len(lengths) else 0
    while start < last:
        running = int(np.searchsorted(-lengths, -start, side="left"))  # sentences longer than start
        steps = np.arange(min(last - start, max(1, max_positions // running)))
        steps, rows = np.nonzero(steps[:, None] + start < lengths[None, :running])
        yield np.bincount(steps), rows, start + steps
        start += int(steps[-1]) + 1
