"""Rows of numbers, some at a time."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

import numpy as np
from jaxtyping import Float

Item = TypeVar("Item")


def unit_rows(x: Float[np.ndarray, "*A X"]) -> Float[np.ndarray, "*A X"]:
    """Return rows of length 1; zero rows stay zero."""
    return x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1e-12)


def batched(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Yield lists of ``size`` items; the last may be shorter."""
    remaining = iter(items)
    while batch := list(islice(remaining, size)):
        yield batch
