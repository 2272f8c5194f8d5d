"""Word vectors of a sentence → one vector of the sentence: SIF, mean or max."""

import os
from typing import TYPE_CHECKING

import numpy as np

from elmokit.embed.sif import SifStatistics
from elmokit.errors import InputError
from elmokit.inference.results import Layers, check_layers
from elmokit.shapes import Float
from elmokit.wording import shown

if TYPE_CHECKING:
    from elmokit.embed.embedder import Embedder

SIF = "sif"
"""Name of the pooling that weighs words by their frequency."""
PLAIN_POOLINGS = ("mean", "max")
"""Those that need nothing but the vectors."""
POOLINGS = (SIF, *PLAIN_POOLINGS)


def check_pooling(pooling: str, *, allowed: tuple[str, ...] = POOLINGS) -> str:
    """Return ``pooling``; raise `InputError` with the choices if there is no such pooling."""
    if pooling not in allowed:
        *first, last = (f'"{name}"' for name in allowed)
        raise InputError(f"`pooling` must be {', '.join(first)} or {last}, got {shown(pooling)}.")
    return pooling


def default_layers(pooling: str) -> Layers:
    """Return the layers that a pooling takes by default."""
    return 0 if pooling == SIF else "average"


class Pooling:
    """One way to pool the words of sentences of one model.

    Args:
        embedder: The model.
        pooling: ``"sif"``, ``"mean"`` or ``"max"``; default: SIF, or the mean for a model without
            vocabulary.
        layers: Those of the vectors that will be pooled; default: `default_layers`.
        statistics: For SIF: a file of `elmokit distil`; default: the model's vocabulary.
    """

    def __init__(
        self,
        embedder: "Embedder",
        pooling: str | None = None,
        *,
        layers: Layers | str | None = None,
        statistics: str | os.PathLike[str] | None = None,
    ) -> None:
        if pooling is None:
            knows_words = statistics is not None or embedder.word_vocab is not None
            pooling = SIF if knows_words else "mean"
        self.name = check_pooling(pooling)
        if statistics is not None and pooling != SIF:
            raise InputError(f'`statistics` are for pooling="sif", got pooling="{pooling}".')
        chosen = default_layers(pooling) if layers is None else layers
        self.layers = check_layers(chosen, embedder.num_layers)
        self._sif: SifStatistics | None = None
        if statistics is not None:
            self._sif = SifStatistics.load(statistics, layers=self.layers)
        elif pooling == SIF:
            self._sif = embedder.sif_statistics(self.layers)

    def __call__(
        self, vectors: Float[np.ndarray, "*layers W E"], words: list[str]
    ) -> Float[np.ndarray, "*layers E"]:
        """Return one float32 vector for the words of a sentence; zeros if there are none."""
        if self._sif is not None:
            return self._sif.pool(vectors, words)
        return pool(vectors, pooling=self.name)


def pool(
    vectors: Float[np.ndarray, "*layers W E"], *, pooling: str = "mean"
) -> Float[np.ndarray, "*layers E"]:
    """Return one float32 vector for the words of a sentence; zeros if there are none.

    Args:
        vectors: What `Embedder.embed` returns for the sentence, without its boundaries.
        pooling: ``"mean"``, summed in double precision, or ``"max"`` of each dimension.
    """
    check_pooling(pooling, allowed=PLAIN_POOLINGS)
    if not vectors.shape[-2]:
        return np.zeros((*vectors.shape[:-2], vectors.shape[-1]), dtype=np.float32)
    if pooling == "max":
        return vectors.max(axis=-2).astype(np.float32, copy=False)
    return vectors.mean(axis=-2, dtype=np.float64).astype(np.float32)
