"""Sentence vectors as a scikit-learn transformer (extra ``sklearn``)."""

# pyright: reportMissingImports=false

from collections.abc import Sized
from typing import Any

import numpy as np

from elmokit.embed.embedder import Embedder
from elmokit.errors import InputError, needs_extra
from elmokit.inference.layers_and_states import Layers, check_one_layer
from elmokit.integrations.shared import AnyModel

with needs_extra("sklearn", module="scikit-learn"):
    from sklearn.base import BaseEstimator, TransformerMixin
    from sklearn.utils.validation import check_is_fitted


class ElmoVectorizer(TransformerMixin, BaseEstimator):
    """Sentences to one vector each, in pipelines, grids and column transformers.

    ``X`` is any sequence of sentences, a pandas Series too: strings, which the model's tokenizer
    splits, or lists of words. ``fit`` loads the model. A pickle holds the model's directory, not
    its weights, if it was given by directory or name.

    Args:
        model: Directory, name or loaded model; default: the English model in the package.
        pooling: ``"mean"``, ``"max"`` or ``"sif"``, as in `Embedder.embed_sentences`.
        layers: ``"average"``, ``"top"`` or the number of a layer; default: as there.
        device, precision: As of `Embedder.load`.

    Attributes:
        embedder_: The `Embedder`.
    """

    def __init__(
        self,
        model: AnyModel = None,
        *,
        pooling: str = "mean",
        layers: Layers | str | None = None,
        device: str = "auto",
        precision: str = "fp32",
    ) -> None:
        self.model, self.pooling, self.layers = model, pooling, layers
        self.device, self.precision = device, precision

    def fit(self, X: Any, y: object = None) -> "ElmoVectorizer":
        _texts(X)
        self.embedder_ = Embedder.load(self.model, device=self.device, precision=self.precision)
        self.transform([])  # checks pooling and layers
        return self

    def transform(self, X: Any) -> Any:
        """Return float32 vectors (N, 2D); an empty sentence is zeros."""
        check_is_fitted(self, "embedder_")
        check_one_layer(self.layers)
        return self.embedder_.embed_sentences(_texts(X), pooling=self.pooling, layers=self.layers)

    def get_feature_names_out(self, input_features: object = None) -> np.ndarray:
        check_is_fitted(self)
        return np.array([f"elmo{i}" for i in range(self.embedder_.dim)], dtype=object)


def _texts(X: Any) -> Any:
    """Return the texts of a column, as scikit-learn passes columns of a table."""
    shape = getattr(X, "shape", ())
    if len(shape) > 2 or (len(shape) == 2 and shape[1] != 1):
        raise InputError(f"One column of texts is needed, got shape {tuple(shape)}.")
    return np.asarray(X).ravel() if shape else X if isinstance(X, Sized) else list(X)
