"""Sentence vectors as a scikit-learn transformer (extra ``sklearn``)."""

# pyright: reportMissingImports=false

import os
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
from jaxtyping import Float

from elmokit.embed.embedder import Embedder
from elmokit.embed.pooling import POOLINGS, pool
from elmokit.errors import InputError, MissingExtraError
from elmokit.inference.results import Layers, check_layers
from elmokit.text.given_sentences import split_sentences
from elmokit.weights.model_dir import PretrainedBiLM

try:
    from sklearn.base import BaseEstimator, TransformerMixin
    from sklearn.utils.validation import check_is_fitted
except ImportError as error:
    raise MissingExtraError("scikit-learn", extra="sklearn") from error

SIF = "sif"
SIF_SMOOTHING = 1e-3
"""a of the weights a / (a + p(w)): the value of the paper."""


class ElmoVectorizer(TransformerMixin, BaseEstimator):
    """Sentences to one vector each, in pipelines, grids and column transformers.

    ``X`` is any sequence of sentences, a pandas Series too: strings, which the model's tokenizer
    splits, or lists of words. ``fit`` loads the model; with ``pooling="sif"`` it also counts words
    and finds the common direction of the training sentences. A pickle holds the model's directory,
    not its weights, if it was given by directory or name.

    Args:
        model: Directory, name or loaded model; default: the English model in the package.
        pooling: ``"mean"``, ``"max"``, or ``"sif"``: a mean weighted by a / (a + p(w)), from which
            the first singular vector of the training sentences is removed.
        layers: ``"average"``, ``"top"`` or the number of a layer.
        device: As of `Embedder.load`.
        precision: As of `Embedder.load`.

    Attributes:
        embedder_: The `Embedder`.
        probabilities_: p(w) in the training sentences (SIF).
        common_direction_: (2D,), of length 1, or zeros (SIF).

    Source: Arora, Liang and Ma 2017, "A simple but tough-to-beat baseline for sentence embeddings",
    algorithm 1; p(w) is that of the training sentences, and unseen words have weight 1.
    """

    def __init__(
        self,
        model: str | os.PathLike[str] | PretrainedBiLM | None = None,
        *,
        pooling: str = "mean",
        layers: Layers | str = "average",
        device: str = "auto",
        precision: str = "fp32",
    ) -> None:
        self.model = model
        self.pooling = pooling
        self.layers = layers
        self.device = device
        self.precision = precision

    def fit(self, X: Any, y: object = None) -> "ElmoVectorizer":
        """Load the model; with SIF, learn word probabilities and the common direction of ``X``."""
        self._fit(X)
        return self

    def fit_transform(self, X: Any, y: object = None) -> Any:
        """Return the vectors of ``X``, which is embedded once."""
        return self._fit(X) if self.pooling == SIF else self.fit(X, y).transform(X)

    def transform(self, X: Any) -> Any:
        """Return float32 vectors (N, 2D); an empty sentence is zeros.

        Raises:
            TypeError, ValueError: as `Embedder.embed`.
        """
        check_is_fitted(self)
        if self.pooling != SIF:
            return self.embedder_.embed_sentences(X, pooling=self.pooling, layers=self.layers)
        return self._without_common(self._weighted(X))

    def get_feature_names_out(self, input_features: object = None) -> np.ndarray:
        """Return ``elmo0``, ``elmo1``, …: one name for each dimension."""
        check_is_fitted(self)
        return np.array([f"elmo{i}" for i in range(self.embedder_.dim)], dtype=object)

    def __sklearn_tags__(self) -> Any:
        """Say that the input is strings, and that fitting needs no target."""
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.transformer_tags.preserves_dtype = []
        return tags

    def _fit(self, X: Any) -> Float[np.ndarray, "N E"] | None:
        if self.pooling not in (choices := (*POOLINGS, SIF)):
            named = ", ".join(f'"{name}"' for name in choices)
            raise InputError(f"`pooling` must be one of {named}, got {self.pooling!r:.60}.")
        if self.layers == "all":
            raise InputError(
                '`layers` must give one vector per word: "average", "top" or a number.'
            )
        self.embedder_ = Embedder.load(self.model, device=self.device, precision=self.precision)
        check_layers(self.layers, self.embedder_.num_layers)
        if self.pooling != SIF:
            return None
        sentences = list(self._words(X))
        counts = Counter(word for words in sentences for word in words)
        total = counts.total()
        self.probabilities_ = {word: count / total for word, count in counts.items()}
        vectors = self._weighted(sentences)
        self.common_direction_ = np.zeros(self.embedder_.dim, dtype=np.float32)
        if vectors.any():
            self.common_direction_ = np.linalg.svd(vectors, full_matrices=False)[2][0]
        return self._without_common(vectors)

    def _words(self, X: Any) -> Iterable[list[str]]:
        return split_sentences(X, self.embedder_.tokenizer.tokenize)

    def _weighted(self, X: Any) -> Float[np.ndarray, "N E"]:
        sentences = list(self._words(X))
        rows = [
            pool(vectors * self._weights(words)) if words else pool(vectors)
            for words, vectors in zip(
                sentences, self.embedder_.embed_stream(sentences, layers=self.layers), strict=True
            )
        ]
        return np.array(rows, dtype=np.float32).reshape(-1, self.embedder_.dim)

    def _weights(self, words: list[str]) -> Float[np.ndarray, "W 1"]:
        p = np.array([self.probabilities_.get(word, 0.0) for word in words], dtype=np.float32)
        return (SIF_SMOOTHING / (SIF_SMOOTHING + p))[:, None]

    def _without_common(self, vectors: Float[np.ndarray, "N E"]) -> Float[np.ndarray, "N E"]:
        common = self.common_direction_
        return vectors - np.outer(vectors @ common, common)
