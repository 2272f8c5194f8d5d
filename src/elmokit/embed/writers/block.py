"""The blocks of sentences that writers of embedding files take."""

from dataclasses import dataclass

import numpy as np

METADATA_KEY = "elmokit"
"""Name under which every file holds its metadata as JSON."""


@dataclass(frozen=True)
class Block:
    """Some finished sentences, in order."""

    indices: list[int]
    """Line numbers in the input, from 0, rising."""
    texts: list[str]
    """The lines as they were read."""
    tokens: list[list[str]]
    """The words of each line."""
    vectors: list[np.ndarray]
    """(L, W, 2D) or (W, 2D), in the dtype of the file."""
