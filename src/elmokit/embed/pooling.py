"""Word vectors of a sentence → one vector of the sentence."""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float

from elmokit.errors import InputError
from elmokit.files.location import shown


def _mean(vectors: np.ndarray) -> np.ndarray:
    return vectors.mean(axis=-2, dtype=np.float64)


def _max(vectors: np.ndarray) -> np.ndarray:
    return vectors.max(axis=-2)


POOLINGS: dict[str, Callable[[np.ndarray], np.ndarray]] = {"mean": _mean, "max": _max}
"""Functions of at least one word: (…, W, 2D) to (…, 2D), by name."""


def check_pooling(pooling: str, *, name: str = "pooling", others: Sequence[str] = ()) -> str:
    """Return ``pooling``; raise `InputError` with the choices if there is no such pooling.

    ``name`` is what the caller's users call it, ``others`` are poolings that it allows besides.
    """
    if pooling not in (allowed := (*POOLINGS, *others)):
        *first, last = (f'"{one}"' for one in allowed)
        raise InputError(f"`{name}` must be {', '.join(first)} or {last}, got {shown(pooling)}.")
    return pooling


def pool(
    vectors: Float[np.ndarray, "*layers W E"], *, pooling: str = "mean"
) -> Float[np.ndarray, "*layers E"]:
    """Return one float32 vector for the words of a sentence; zeros if there are none.

    Args:
        vectors: What `Embedder.embed` returns for the sentence, without its boundaries.
        pooling: ``"mean"``, summed in double precision, or ``"max"`` of each dimension.

    Raises:
        ValueError: if there is no such pooling.
    """
    pooled = POOLINGS[check_pooling(pooling)]
    if not vectors.shape[-2]:
        return np.zeros((*vectors.shape[:-2], vectors.shape[-1]), dtype=np.float32)
    return pooled(vectors).astype(np.float32, copy=False)
