"""The LSTM memory that inference carries, as arrays; `elmokit.BiLMState` is that of the modules."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from elmokit.bilm.config import Direction, LSTMConfig
from elmokit.shapes import Float

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
