"""The network over a batch of sentences, no padding computed: the numbers of `nn.BiLM`, less work.

What is different from `nn.bilm.BiLM.forward`:

* Sentences are read by falling length, and the batch of a step shrinks as they end.
* The input products of a layer are computed for many positions at once, before the recurrence; in
  chunks of bounded size, with the state handed over, so that a sentence of any length needs memory
  for its result and its distinct words only.
* The backward direction reads every sentence from its own end.

Products are the business of the network (`elmokit.embed.network`), which gives every row the same
bits in any company.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, cast, get_args

import numpy as np
import torch
from jaxtyping import Float, Integer
from torch import Tensor

from elmokit.embed.network import Network
from elmokit.nn.bilm import BiLMState, Direction, DirectionState

Layers = Literal["all", "top", "average"] | int
"""Which layers are returned: all of them, the last, their plain mean, or one by its number."""

MAX_CHUNK_VALUES = 2**22
"""Gate inputs held at a time (positions x 4H): 16 MB as fp32."""


def check_layers(layers: str | int, num_layers: int) -> Layers:
    """Return ``layers`` if a model with ``num_layers`` (the token layer included) has them.

    Raises:
        ValueError: if it does not; the message has the choices.
    """
    named = isinstance(layers, str) and layers in ("all", "top", "average")
    numbered = isinstance(layers, int) and not isinstance(layers, bool) and 0 <= layers < num_layers
    if not (named or numbered):
        raise ValueError(
            f'`layers` must be "all", "top", "average" or a number from 0 (the token layer) to '
            f"{num_layers - 1} for this model, got {layers!r}."
        )
    return cast(Layers, layers)


@dataclass(frozen=True)
class EngineOutput:
    """What the engine makes of a batch."""

    vectors: list[np.ndarray]
    """For each sentence float32 (L, W, 2D), or (W, 2D) where one layer was asked for."""
    state: BiLMState
    """Memory after each sentence, in their order; rows beyond them as they came in."""


@dataclass(frozen=True)
class _Chunk:
    """Some steps of a batch. Its values are packed: the rows of the first step, of the next, …."""

    start: int
    """First step, counted from where the direction starts to read."""
    num_rows: np.ndarray
    """Sentences that are still running at each step."""
    rows: np.ndarray
    """Row of each packed value (P,)."""
    steps: np.ndarray
    """Step of each packed value (P,), counted from ``start``."""

    def by_row(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the packed positions sorted by row, then step (P,); and how many each row has."""
        first = np.cumsum([0, *self.num_rows[:-1]])
        counts = np.bincount(self.rows)
        rows = np.repeat(np.arange(len(counts)), counts)
        steps = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        return first[steps] + rows, counts


class Engine:
    """Run a biLM over batches of sentences given as rows of token vectors.

    Args:
        network: As `elmokit.embed.precision.build_network` makes it.
    """

    def __init__(self, network: Network) -> None:
        self.network = network

    @torch.inference_mode()
    def encode_tokens(self, ids: Integer[np.ndarray, "U ..."]) -> Float[Tensor, "U D"]:
        """Return the token layer of distinct tokens, each run through it once."""
        return self.network.encode_tokens(ids)

    @torch.inference_mode()
    def run(
        self,
        vectors: Float[Tensor, "U D"],
        sentences: Sequence[Integer[np.ndarray, " _"]],
        *,
        layers: Layers = "all",
        state: BiLMState | None = None,
    ) -> EngineOutput:
        """Read the sentences.

        Args:
            vectors: Token layer of the distinct tokens.
            sentences: For each sentence its rows of ``vectors``, boundaries included.
            layers: What to return.
            state: Memory before each sentence, row *k* for sentence *k*; sentences beyond its rows
                start at zero, rows beyond the sentences are returned as they are.
        """
        lengths = np.array([len(sentence) for sentence in sentences], dtype=np.int64)
        order = np.argsort(-lengths, kind="stable")
        state = self._grown(state, len(sentences))
        result = _Result(lengths - 2, layers, self.network)
        for i, tokens in enumerate(sentences):
            result.add_token_layer(i, vectors, tokens)
        hidden, cell = state.hidden.clone(), state.cell.clone()
        rows = torch.from_numpy(order).to(self.network.device)
        for index, direction in enumerate(get_args(Direction)):
            new_hidden, new_cell = self._read(
                direction,
                vectors,
                [sentences[i] for i in order],
                (hidden[:, index].index_select(1, rows), cell[:, index].index_select(1, rows)),
                _Sink(result, direction, order, lengths),
            )
            hidden[:, index, rows] = new_hidden
            cell[:, index, rows] = new_cell
        return EngineOutput(result.arrays, BiLMState(hidden, cell))

    def _grown(self, state: BiLMState | None, num_rows: int) -> BiLMState:
        """Return ``state`` with at least ``num_rows`` rows, the new ones zero."""
        lstm, device = self.network.config.lstm, self.network.device
        if state is None:
            return BiLMState.zeros(lstm, num_rows, device=device)
        expected = (lstm.num_layers, 2, lstm.projection_dim, lstm.cell_dim)
        got = (*state.hidden.shape[:2], state.hidden.shape[-1], state.cell.shape[-1])
        if got != expected:
            raise ValueError(
                f"`state` is of another model: it must have (layers, directions, projection, cell) "
                f"{expected}, got {got}. Pass the state that this model returned."
            )
        hidden, cell = state.hidden.to(device).float(), state.cell.to(device).float()
        missing = num_rows - state.num_rows
        if missing > 0:
            fresh = BiLMState.zeros(lstm, missing, device=device)
            hidden, cell = torch.cat((hidden, fresh.hidden), 2), torch.cat((cell, fresh.cell), 2)
        return BiLMState(hidden, cell)

    def _read(
        self,
        direction: Direction,
        vectors: Tensor,
        sentences: list[np.ndarray],
        state: DirectionState,
        sink: "_Sink",
    ) -> DirectionState:
        """Read sentences of falling length; return the states (N, B, D) and (N, B, H)."""
        reader = self.network.start(direction, vectors, state)
        lengths = np.array([len(sentence) for sentence in sentences], dtype=np.int64)
        tokens = np.concatenate(sentences) if sentences else np.zeros(0, dtype=np.int64)
        first = np.cumsum(lengths) - lengths
        max_positions = max(1, MAX_CHUNK_VALUES // (4 * self.network.config.lstm.cell_dim))
        for chunk in _cut(lengths, max_positions):
            step = chunk.start + chunk.steps
            position = step if direction == "forward" else lengths[chunk.rows] - 1 - step
            sink.open(chunk)
            outputs = reader.read(tokens[first[chunk.rows] + position], chunk.num_rows)
            for layer, values in enumerate(outputs, start=1):
                sink.add(layer, values)
        return reader.state()


def _cut(lengths: np.ndarray, max_positions: int) -> Iterator[_Chunk]:
    """Cut the steps of sentences of falling length into chunks of about ``max_positions``."""
    start, last = 0, int(lengths[0]) if len(lengths) else 0
    while start < last:
        running = int(np.searchsorted(-lengths, -start, side="left"))  # sentences longer than start
        steps = np.arange(min(last - start, max(1, max_positions // running)))
        steps, rows = np.nonzero(steps[:, None] + start < lengths[None, :running])
        yield _Chunk(start, np.bincount(steps), rows, steps)
        start += int(steps[-1]) + 1


class _Result:
    """The arrays that are handed out, filled piece by piece."""

    def __init__(self, num_words: np.ndarray, layers: Layers, network: Network) -> None:
        self.layers = layers
        self.num_layers = network.config.lstm.num_layers + 1
        self.dim = network.config.lstm.projection_dim
        leading = (self.num_layers,) if layers == "all" else ()
        make = np.zeros if layers == "average" else np.empty
        shapes = [(*leading, int(n), 2 * self.dim) for n in num_words]
        self.arrays = [make(shape, dtype=np.float32) for shape in shapes]

    def wants(self, layer: int) -> bool:
        """Tell whether ``layer`` is part of what was asked for."""
        wanted = self.num_layers - 1 if self.layers == "top" else self.layers
        return wanted in ("all", "average") or wanted == layer

    def add(self, sentence: int, layer: int, half: int, start: int, values: np.ndarray) -> None:
        """Put the vectors of some words, from word ``start`` on, into one half of a layer."""
        array = self.arrays[sentence]
        target = array[layer] if self.layers == "all" else array
        place = target[start : start + len(values), half * self.dim : (half + 1) * self.dim]
        if self.layers == "average":
            place += values / np.float32(self.num_layers)
        else:
            place[...] = values

    def add_token_layer(self, sentence: int, vectors: Tensor, tokens: np.ndarray) -> None:
        """Put the token layer, twice side by side, a piece at a time."""
        if not self.wants(0):
            return
        words, piece = tokens[1:-1], 4096
        for start in range(0, len(words), piece):
            index = torch.from_numpy(words[start : start + piece]).to(vectors.device)
            values = vectors[index].cpu().numpy()
            self.add(sentence, 0, 0, start, values)
            self.add(sentence, 0, 1, start, values)


class _Sink:
    """Takes the packed outputs of one direction apart and puts them where they belong."""

    def __init__(
        self, result: _Result, direction: Direction, order: np.ndarray, lengths: np.ndarray
    ) -> None:
        self.result = result
        self.backward = direction == "backward"
        self.order = order
        self.lengths = lengths

    def open(self, chunk: _Chunk) -> None:
        """Prepare for the outputs of a chunk."""
        packed, self._counts = chunk.by_row()
        self._packed = torch.from_numpy(packed)
        self._start = chunk.start

    def add(self, layer: int, outputs: Tensor) -> None:
        """Store the outputs of a layer, boundaries left out."""
        if not self.result.wants(layer):
            return
        values = outputs.index_select(0, self._packed.to(outputs.device)).float().cpu().numpy()
        end = np.cumsum(self._counts)
        for row, count in enumerate(self._counts):
            piece = values[end[row] - count : end[row]]
            sentence = int(self.order[row])
            num_positions = int(self.lengths[sentence])
            first = self._start  # text position of the piece, boundaries counted
            if self.backward:
                piece = piece[::-1]
                first = num_positions - self._start - int(count)
            skip_begin = int(first == 0)
            skip_end = int(first + count == num_positions)
            words = piece[skip_begin : len(piece) - skip_end]
            self.result.add(sentence, layer, int(self.backward), first + skip_begin - 1, words)
