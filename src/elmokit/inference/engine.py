"""The network over a batch of sentences, no padding computed: the numbers of `nn.BiLM`, less work.

What is different from `nn.bilm.BiLM.forward`:

* Sentences are read by falling length, and the batch of a step shrinks as they end.
* The input products of a layer are computed for many positions at once, before the recurrence; in
  chunks of bounded size, with the state handed over, so that a sentence of any length needs memory
  for its result and its distinct words only.
* The backward direction reads every sentence from its own end.

Products are the business of the network (`elmokit.inference.backend`), which gives every row the
same bits in any company.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np
import torch
from jaxtyping import Float, Integer
from torch import Tensor

from elmokit.bilm.bilm import BiLMState, Direction, DirectionState
from elmokit.inference.backend import Network
from elmokit.inference.results import Layers, OutputSlots, Results


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
        lengths = np.array([len(sentence) for sentence in sentences], dtype=np.int64)
        order = np.argsort(-lengths, kind="stable")
        state = self._grown(state, len(sentences))
        lstm = self.network.config.lstm
        results = Results(
            lengths - 2, layers, num_layers=lstm.num_layers + 1, dim=lstm.projection_dim
        )
        results.add_token_layer(vectors, sentences)
        hidden, cell = state.hidden.clone(), state.cell.clone()
        rows = torch.from_numpy(order).to(self.network.device)
        for index, direction in enumerate(get_args(Direction)):
            new_hidden, new_cell = self._read(
                direction,
                vectors,
                [sentences[i] for i in order],
                (hidden[:, index].index_select(1, rows), cell[:, index].index_select(1, rows)),
                (results, order),
            )
            hidden[:, index].index_copy_(1, rows, new_hidden)
            cell[:, index].index_copy_(1, rows, new_cell)
        return EngineOutput(results.arrays, BiLMState(hidden, cell))

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
        target: tuple[Results, np.ndarray],
    ) -> DirectionState:
        """Read sentences of falling length; return the states (N, B, D) and (N, B, H).

        Args:
            direction: Which way.
            vectors: Token layer of the distinct tokens.
            sentences: Rows of ``vectors``.
            state: Before them.
            target: Where outputs go, and each sentence's number there.
        """
        results, order = target
        reader = self.network.start(direction, vectors, state)
        lengths = np.array([len(sentence) for sentence in sentences], dtype=np.int64)
        tokens = np.concatenate(sentences) if sentences else np.zeros(0, dtype=np.int64)
        first = np.cumsum(lengths) - lengths
        for chunk in _cut(lengths, self.network.max_positions):
            step = chunk.start + chunk.steps
            position = step if direction == "forward" else lengths[chunk.rows] - 1 - step
            half = 0 if direction == "forward" else 1
            slots = OutputSlots(results, half, order[chunk.rows], position - 1)
            reader.read(tokens[first[chunk.rows] + position], chunk.num_rows, slots)
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
