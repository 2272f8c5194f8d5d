"""Smooth inverse frequency (SIF): sentence vectors in which rare words count more than frequent.

A word's vector is scaled to length 1, centered, and whitened, which keeps the few leading
components from drowning the others; a sentence is the mean of its words, each weighted by
a / (a + p(w)). The statistics are fixed by a model, or by a file of `elmokit distil`, never by the
sentences themselves: the same sentence always has the same vector.

Sources: Arora, Liang and Ma 2017, "A simple but tough-to-beat baseline for sentence embeddings"
(the weights); Mu and Viswanath 2018, "All-but-the-top" (leading components); Su et al. 2021,
"Whitening sentence representations". The value of a and whitening instead of the removal of
components were chosen on the training part of STS-B (docs/guides/similarity.md).
"""

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from elmokit.errors import InputError
from elmokit.inference.results import Layers
from elmokit.shapes import Float

if TYPE_CHECKING:
    from elmokit.embed.embedder import Embedder

SMOOTHING = 5e-4
"""a of the weights a / (a + p(w))."""
MAX_VOCABULARY = 5000
"""Most frequent words of a model's vocabulary whose vectors are measured."""
_LEAST_SHARE = 1e-6
"""Of the largest variance; components with less are noise, or the twin half of the token layer."""


@dataclass(frozen=True)
class SifStatistics:
    """What SIF knows of words: their probabilities, and how their vectors lie."""

    probabilities: Mapping[str, float]
    """p(w) of words in lower case; others are as rare as the rarest."""
    mean: Float[np.ndarray, "*layers E"]
    """Of word vectors of length 1."""
    whitening: Float[np.ndarray, "*layers E E"]
    """Turns centered vectors into ones without correlation; zeros what has no variance."""

    @classmethod
    def measure(
        cls,
        words: Sequence[str],
        probabilities: Mapping[str, float],
        vectors: Float[np.ndarray, "*layers V E"],
        *,
        remove: int | None = None,
    ) -> "SifStatistics":
        """Measure mean and covariance of the vectors of words.

        A word counts by p(w) times the square of its weight, as in the sentences of a text.
        ``remove`` takes away that many leading components and leaves the others as they are,
        instead of whitening.
        """
        weights = _weights(words, probabilities)
        share = weights**2 * [probabilities[word.lower()] for word in words]
        share = share / share.sum()
        rows = _unit(vectors)
        mean = share @ rows  # (*layers, E)
        centered = rows - mean[..., None, :]
        # of all layers at once: leading axes are those of the layers
        covariance = np.swapaxes(centered, -1, -2) @ (centered * share[:, None])
        variances, axes = np.linalg.eigh(covariance)  # ascending
        has_variance = variances > _LEAST_SHARE * variances[..., -1:]
        scales = np.where(has_variance, np.maximum(variances, 1e-30) ** -0.5, 0.0)
        if remove is not None:
            scales = np.ones_like(scales)
            scales[..., scales.shape[-1] - remove :] = 0.0
        # A diag(s) A^T: into the axes of the components, scaled there, and back
        whitening = (axes * scales[..., None, :]) @ np.swapaxes(axes, -1, -2)
        return cls(probabilities, mean.astype(np.float32), whitening.astype(np.float32))

    @classmethod
    def of_vocabulary(cls, embedder: "Embedder", layers: Layers | str) -> "SifStatistics":
        """Measure a model by its vocabulary alone: p(w) by rank (Zipf), vectors of single words."""
        vocab = embedder.word_vocab
        words = [] if vocab is None else vocab.frequent_words()
        if len(words) < 2:
            raise InputError(
                'pooling="sif" needs frequencies of words, and this model has no vocabulary. Use '
                'pooling="mean", or give `statistics`, a .safetensors file of `elmokit distil`.'
            )
        ranks = 1.0 / np.arange(1, len(words) + 1)
        probabilities = lower_case_shares(zip(words, ranks.tolist(), strict=True))
        words = words[:MAX_VOCABULARY]
        single = embedder.stream_with_states(([w] for w in words), layers=layers, check_words=False)
        vectors = np.concatenate([vector for vector, _ in single], axis=-2)
        return cls.measure(words, probabilities, vectors)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, layers: Layers | str) -> "SifStatistics":
        """Read the statistics of a table of `elmokit distil`, which must be of ``layers``."""
        from elmokit.vectors import safetensors_file

        table = safetensors_file.read_table(path)
        if table.layers != str(layers):
            raise InputError(f"{path} is a table of layers={table.layers}, not layers={layers}.")
        shares = zip(table.words, table.counts.tolist(), strict=True)
        return cls(lower_case_shares(shares), table.mean, table.whitening)

    def words(
        self, vectors: Float[np.ndarray, "*layers W E"], words: Sequence[str]
    ) -> Float[np.ndarray, "*layers W E"]:
        """Return the whitened vectors of words, each times its weight."""
        rows = (_unit(vectors) - self.mean[..., None, :]) @ self.whitening
        return (rows * _weights(words, self.probabilities)[:, None]).astype(np.float32)

    def pool(
        self, vectors: Float[np.ndarray, "*layers W E"], words: Sequence[str]
    ) -> Float[np.ndarray, "*layers E"]:
        """Return the vector of a sentence, the mean of its `words`; zeros if there are none."""
        total = self.words(vectors, words).sum(axis=-2, dtype=np.float64).astype(np.float32)
        return total / np.float32(max(1, len(words)))


def lower_case_shares(counts: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Return p(w) of words in lower case from counts by spelling."""
    sums: Counter[str] = Counter()
    for word, count in counts:
        sums[word.lower()] += count  # pyright: ignore[reportArgumentType]
    total = sums.total()
    return {word: count / total for word, count in sums.items()}


def _weights(words: Sequence[str], probabilities: Mapping[str, float]) -> np.ndarray:
    p = np.array([probabilities.get(word.lower(), 0.0) for word in words])
    return SMOOTHING / (SMOOTHING + p)


def _unit(vectors: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.maximum(lengths, 1e-12)
