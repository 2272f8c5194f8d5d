"""A trained classifier of texts (`BCN`) without PyTorch."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from elmokit.inference.numpy_backend import linear
from elmokit.tasks.frozen_tagger import Batch, FrozenTagger, read_both_ways
from elmokit.tasks.inputs.layer_cache import Sentence
from elmokit.tasks.task import Answer, Labels


def label_answers(labels: Labels, logits: Any, probs: Any) -> list[Answer]:
    """Return the best label of each text, with the probabilities of all labels.

    ``logits`` and ``probs`` are arrays or tensors (B, Y).
    """
    rows = zip(logits.argmax(1).tolist(), probs.tolist(), strict=True)
    return [
        (labels[best], lambda row=row: dict(zip(labels, row, strict=True))) for best, row in rows
    ]


class FrozenClassifier(FrozenTagger):
    """The network of a run of `sentiment`.

    Its equations are those of `elmokit.tasks.networks.classifier.BCN`, arguments and errors those
    of `FrozenTagger`.
    """

    def answer(self, batches: Sequence[Batch], examples: Sequence[Any]) -> list[Answer]:
        """Return the label of each text, with the probabilities of all labels."""
        ((sentences, layers),) = batches
        logits = self._text_logits(sentences, layers)
        powers = np.exp(logits - logits.max(axis=1, keepdims=True), dtype=np.float64)
        return label_answers(self._labels, logits, powers / powers.sum(axis=1, keepdims=True))

    def _text_logits(
        self, sentences: Sequence[Sentence], layers: Sequence[np.ndarray] | None
    ) -> np.ndarray:
        """Return the scores of labels: (B, Y)."""
        lengths = np.array([len(words) for words in sentences], dtype=np.int64)
        ends = np.cumsum(lengths)[:-1]
        width = 2 * self._config.hidden_dims[0]
        pooled = np.zeros((len(sentences), 3 * width), dtype=np.float32)
        if lengths.any():
            rows = np.split(np.arange(lengths.sum()), ends)
            x = np.maximum(linear(self._inputs(sentences, layers), *self._to_width), 0)
            x = read_both_ways(self._engines[0], x, rows)
            if "output" in self.settings.mix_positions:
                x = np.concatenate([x, self._mixture("output", layers)], axis=1)
            # a text attends to itself alone, so texts are taken apart again
            attended = np.concatenate([_attended(text) for text in np.split(x, ends)])
            x = np.concatenate([x, x - attended, x * attended], axis=1)
            x = read_both_ways(self._engines[1], x, rows)
            for number, text in enumerate(np.split(x, ends)):
                if len(text):  # the vector of an empty text is 0
                    pooled[number] = self._pooled(text)
        return linear(np.maximum(linear(pooled, *self._hidden), 0), *self._to_labels)

    def _pooled(self, text: np.ndarray) -> np.ndarray:
        """Return maximum, mean and weighted mean of a text's positions: (N, X) -> (3X,)."""
        weights = _softmax(text @ self._pool)
        return np.concatenate([text.max(axis=0), text.mean(axis=0), weights @ text])

    def _build(self, width: int) -> None:
        dim = self._config.hidden_dims[0]
        encoded = 2 * dim + self._bilm.dim * ("output" in self.settings.mix_positions)
        self._to_width = self._take_linear("to_width", width, dim)
        self._engines = [
            self._take_layer("encoder.layers.0", dim, dim, reads_characters=True),
            self._take_layer("integrator.layers.0", 3 * encoded, dim),
        ]
        self._pool = self._take("pool.score.weight", 1, 2 * dim)[0]
        self._hidden = self._take_linear("hidden", 6 * dim, dim)
        self._to_labels = self._take_linear("to_labels", dim, len(self._labels))


def _attended(text: np.ndarray) -> np.ndarray:
    """Return the mean of a text's positions that each of them attends to: (N, X) -> (N, X)."""
    return _softmax(text @ text.T / text.shape[1] ** 0.5) @ text


def _softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True, initial=-np.inf))
    return powers / powers.sum(axis=-1, keepdims=True)
