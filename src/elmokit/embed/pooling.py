"""Word vectors of a sentence → one vector of the sentence: mean, max, or SIF.

In smooth inverse frequency (SIF) rare words count more. Source: Arora, Liang and Ma 2017, "A simple
but tough-to-beat baseline for sentence embeddings", algorithm 1. p(w) is taken from the sentences
themselves; words that are not in them have weight 1.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from jaxtyping import Float

from elmokit.errors import InputError
from elmokit.wording import shown

POOLINGS = ("mean", "max")
"""What `pool` does with the words of a sentence."""
SIF = "sif"
"""Name of the pooling that needs all sentences."""
SMOOTHING = 1e-3
"""a of the weights a / (a + p(w)): the value of the paper."""


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
    """
    check_pooling(pooling)
    if not vectors.shape[-2]:
        return np.zeros((*vectors.shape[:-2], vectors.shape[-1]), dtype=np.float32)
    if pooling == "max":
        return vectors.max(axis=-2).astype(np.float32, copy=False)
    return vectors.mean(axis=-2, dtype=np.float64).astype(np.float32)


def word_probabilities(sentences: Iterable[Sequence[str]]) -> dict[str, float]:
    """Return p(w) of every word; empty if there are no words."""
    counts = Counter(word for words in sentences for word in words)
    total = counts.total()
    return {word: count / total for word, count in counts.items()}


def weighted_mean(
    vectors: Float[np.ndarray, "*layers W E"],
    words: Sequence[str],
    probabilities: Mapping[str, float],
) -> Float[np.ndarray, "*layers E"]:
    """Return the mean of the word vectors, each times a / (a + p(w)); zeros without words."""
    p = np.array([probabilities.get(word, 0.0) for word in words], dtype=np.float32)
    return pool(vectors * (SMOOTHING / (SMOOTHING + p))[:, None])


def common_direction(
    blocks: Iterable[Float[np.ndarray, "N *layers E"]],
) -> Float[np.ndarray, "*layers E"]:
    """Return the first right singular vector of the rows of all blocks, for each layer.

    Its length is 1, or 0 if all rows are zeros. At least one block must be given.
    """
    product = np.zeros(())
    for block in blocks:
        rows = np.moveaxis(block.astype(np.float64), 0, -2)  # (*layers, N, E)
        product = product + rows.swapaxes(-1, -2) @ rows
    directions = np.linalg.eigh(product)[1][..., -1]
    has_any = np.asarray(product.any(axis=(-2, -1)))[..., None]
    return np.where(has_any, directions, 0.0).astype(np.float32)


def without_common(
    vectors: Float[np.ndarray, "*some E"], direction: Float[np.ndarray, "*layers E"]
) -> Float[np.ndarray, "*some E"]:
    """Return vectors without their part along a direction."""
    along = (vectors * direction).sum(axis=-1, keepdims=True)
    return vectors - along * direction
