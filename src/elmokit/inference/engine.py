"""The network over a batch of sentences, no padding computed: the numbers of `BiLM`, less work.

What is different from `BiLM.forward`:

* Sentences are read by falling length, and the batch of a step shrinks as they end.
* The input products of a layer are computed for many positions at once, before the recurrence; in
  chunks of bounded size, with the state handed over, so that a sentence of any length needs memory
  for its result and its distinct words only.
* The backward direction reads every sentence from its own end.

Products are the business of the network (`elmokit.inference.backend`), which gives every row the
same bits in any company.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np
import torch
from jaxtyping import Float, Integer
from torch import Tensor

from elmokit.bilm.bilm import BiLMState, Direction, DirectionState
from elmokit.inference.backend import Network
from elmokit.inference.results import Layers, OutputSlots, Results

OnOutputs = Callable[[Tensor, np.ndarray, np.ndarray], None]
"""(outputs (P, D), sentence of each row (P,), its position in that sentence (P,))."""


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


class Engine:
    """Run a biLM over batches of sentences given as rows of token vectors.

    Args:
        network: As `elmokit.inference.precision.build_network` makes it.
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
        state = self._grown(state, len(sentences))
        lengths = np.array([len(sentence) for sentence in sentences], dtype=np.int64)
        lstm = self.network.config.lstm
        results = Results(
            lengths - 2, layers, num_layers=lstm.num_layers + 1, dim=lstm.projection_dim
        )
        results.add_token_layer(vectors, sentences)
        hidden, cell = state.hidden.clone(), state.cell.clone()
        rows = slice(0, len(sentences))
        for index, direction in enumerate(get_args(Direction)):
            before = hidden[:, index, rows], cell[:, index, rows]
            hidden[:, index, rows], cell[:, index, rows] = self.read(
                direction, vectors, sentences, before, results=results
            )
        return EngineOutput(results.arrays, BiLMState(hidden, cell))

    @torch.inference_mode()
    def read(
        self,
        direction: Direction,
        vectors: Float[Tensor, "U D"],
        sentences: Sequence[Integer[np.ndarray, " _"]],
        state: DirectionState,
        *,
        results: Results | None = None,
        on_top: OnOutputs | None = None,
    ) -> DirectionState:
        """Read the sentences in one direction: ``backward`` starts at the end of each.

        Args:
            direction: Which way.
            vectors: Token layer of the distinct tokens.
            sentences: For each sentence its rows of ``vectors``, in the order of the text.
            state: (hidden (N, B, D), cell (N, B, H)) before each of the B sentences.
            results: Where the outputs of the wanted layers go, the sentences' boundaries left out.
            on_top: Given the outputs of the last layer, piece by piece.

        Returns:
            The state after each sentence.
        """
        lengths = np.array([len(sentence) for sentence in sentences], dtype=np.int64)
        order = np.argsort(-lengths, kind="stable")
        rows = torch.from_numpy(order).to(self.network.device)
        hidden, cell = (part.index_select(1, rows) for part in state)
        reader = self.network.start(direction, vectors, (hidden, cell))
        lengths = lengths[order]
        tokens = np.concatenate([np.zeros(0, dtype=np.int64), *(sentences[i] for i in order)])
        first = np.cumsum(lengths) - lengths
        for chunk in _cut(lengths, self.network.max_positions):
            step = chunk.start + chunk.steps
            position = step if direction == "forward" else lengths[chunk.rows] - 1 - step
            sentence = order[chunk.rows]
            slots = None
            if results is not None:
                half = 0 if direction == "forward" else 1
                slots = OutputSlots(results, half, sentence, position - 1)
            outputs = reader.read(tokens[first[chunk.rows] + position], chunk.num_rows, slots)
            if on_top is not None:
                on_top(outputs, sentence, position)
        hidden, cell = (
            torch.empty_like(part).index_copy_(1, rows, part) for part in reader.state()
        )
        return hidden, cell

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


def _cut(lengths: np.ndarray, max_positions: int) -> Iterator[_Chunk]:
    """Cut the steps of sentences of falling length into chunks of about ``max_positions``."""
    start, last = 0, int(lengths[0]) if len(lengths) else 0
    while start < last:
        running = int(np.searchsorted(-lengths, -start, side="left"))  # sentences longer than start
        steps = np.arange(min(last - start, max(1, max_positions // running)))
        steps, rows = np.nonzero(steps[:, None] + start < lengths[None, :running])
        yield _Chunk(start, np.bincount(steps), rows, steps)
        start += int(steps[-1]) + 1
