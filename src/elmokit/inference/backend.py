"""The interface between the engine and a network: token vectors, and a reader per direction."""

from typing import Protocol, runtime_checkable

import numpy as np

from elmokit.bilm.config import BiLMConfig, Direction
from elmokit.inference.results import OutputSlots
from elmokit.inference.state import DirectionState
from elmokit.kernels.library import Kind
from elmokit.shapes import Float, Integer

Precision = Kind
"""Of the matrix products, as the kernels name it."""


@runtime_checkable
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


@runtime_checkable
class Network(Protocol):
    """A biLM ready for inference, in some precision on some device."""

    config: BiLMConfig
    device: str
    precision: Precision
    computed_by: str
    """Name of the implementation; results of two of them differ in the last bits."""
    max_positions: int
    """Approximate number of positions to read at a time; bounds the memory."""

    def encode_tokens(self, ids: Integer[np.ndarray, "U ..."]) -> Float[np.ndarray, "U D"]:
        """Run the token layer; a token's vector does not depend on the others, to the last bit."""
        ...

    def start(
        self, direction: Direction, vectors: Float[np.ndarray, "U D"], state: DirectionState
    ) -> Reader:
        """Return a reader of sentences made of rows of ``vectors``, from a state of B rows."""
        ...
