"""What the engine needs of a network: token vectors, and a reader for each direction."""

from typing import Literal, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Integer
from torch import Tensor

from elmokit.bilm.bilm import BiLMConfig, Direction, DirectionState
from elmokit.inference.results import OutputSlots

Precision = Literal["fp32", "bf16", "int8"]
"""Choices of arithmetic."""


@runtime_checkable
class Reader(Protocol):
    """Reads a batch in one direction, chunk after chunk, keeping its LSTM state between them."""

    def read(
        self,
        index: Integer[np.ndarray, " P"],
        num_rows: Integer[np.ndarray, " S"],
        slots: OutputSlots | None,
    ) -> Float[Tensor, "P D"]:
        """Read some steps, and put the outputs of every layer, skip connections added, in place.

        Args:
            index: Rows of the token vectors, packed: the rows of the first step, of the next, ….
            num_rows: Sentences that are still running at each step; never rising.
            slots: Where the outputs of the packed positions belong; none: nowhere.

        Returns:
            The outputs of the last layer.
        """
        ...

    def state(self) -> DirectionState:
        """Return (hidden (N, B, D), cell (N, B, H)) after what was read."""
        ...


@runtime_checkable
class Network(Protocol):
    """A biLM ready for inference, in some precision on some device."""

    config: BiLMConfig
    device: torch.device
    precision: Precision
    """What it computes in."""
    computed_by: str
    """Whose arithmetic it is: results of different ones differ in the last bits."""
    max_positions: int
    """Positions that a reader should be given at a time, about: it bounds the memory."""

    def encode_tokens(self, ids: Integer[np.ndarray, "U ..."]) -> Float[Tensor, "U D"]:
        """Run the token layer over distinct tokens: character ids (U, C) or word ids (U,).

        A token's vector does not depend on the others, to the last bit.
        """
        ...

    def start(
        self, direction: Direction, vectors: Float[Tensor, "U D"], state: DirectionState
    ) -> Reader:
        """Return a reader of sentences made of rows of ``vectors``, from a state of B rows."""
        ...
