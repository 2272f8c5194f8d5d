"""What a format of embedding files must offer, and the blocks of sentences that it writes.

Every file holds the metadata of the run as JSON under the name `METADATA_KEY`. A sentence is
identified by its index, the number of its line in the input, from 0.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

METADATA_KEY = "elmokit"


@dataclass(frozen=True)
class Block:
    """Some finished sentences, in order."""

    indices: list[int]
    """Line numbers, rising."""
    texts: list[str]
    """The lines as they were read."""
    tokens: list[list[str]]
    """The words of each line."""
    vectors: list[np.ndarray]
    """(L, W, 2D) or (W, 2D), in the dtype of the file."""


@runtime_checkable
class EmbeddingWriter(Protocol):
    """Writes one embedding file, which is complete after `close`, and only then.

    The constructor takes the path, the metadata and ``num_bytes``, the approximate size.
    """

    def write(self, block: Block) -> None:
        """Append sentences."""
        ...

    def close(self) -> None:
        """Finish the file."""
        ...
