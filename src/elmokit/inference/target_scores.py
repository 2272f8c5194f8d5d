"""Exact losses, entropies and ranks of target words under a frozen softmax, and likeliest words.

Losses, entropies and ranks come from compiled kernels without keeping the scores of the other
words. Likeliest words, and all figures where there are no kernels, come from the scores in fp32, of
which only a few rows exist at a time.

In bf16 the products with rare words have bf16 factors and fp32 sums; the target's score and the
products with frequent words, which hold most of the probability, are fp32.
"""

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from elmokit.bilm.config import cutoffs_of
from elmokit.inference.device import torch_backend
from elmokit.inference.numpy_backend import linear
from elmokit.kernels.layers import PackedLogSumExp
from elmokit.kernels.library import MatrixKind, load_kernels
from elmokit.shapes import Float, Int, Integer
from elmokit.weights.stored_bilm import LoadedBiLM

FREQUENT_WORDS = 1024
"""Words, by rank in the vocabulary, whose products are always fp32."""
MAX_SCORES = 1 << 22
"""Scores of words that are held at once."""


@dataclass(frozen=True)
class DistributionTable:
    """Figures of the distributions over V words at N positions, and the K likeliest words."""

    ranks: Int[np.ndarray, " N"]
    """1 + the number of words that are likelier than the target."""
    entropies: Float[np.ndarray, " N"]
    """In bits."""
    top_ids: Int[np.ndarray, "N K"]
    """Word ids of the likeliest words, by descending probability."""
    top_probs: Float[np.ndarray, "N K"]

    @classmethod
    def empty(cls, num_positions: int, num_top: int) -> "DistributionTable":
        """Return a table for `TargetScores.describe` to fill."""
        return cls(
            np.empty(num_positions, np.int32), np.empty(num_positions, np.float32),
            np.empty((num_positions, num_top), np.int32),
            np.empty((num_positions, num_top), np.float32),
        )  # fmt: skip


class TargetScores:
    """Negative log-likelihoods under the whole softmax of a model.

    Without compiled kernels NumPy computes them in fp32, on other devices PyTorch; ``precision`` is
    that of the kernels' products with rare words.
    """

    def __init__(
        self, model: LoadedBiLM, *, precision: MatrixKind = "fp32", device: str | None = None
    ) -> None:
        stored = model.stored()
        config, num_words = stored.softmax_config, stored.num_target_words
        assert config is not None
        assert num_words is not None
        self.num_words = num_words
        self._precision = precision
        self._parts: list[PackedLogSumExp] = []
        self._plain: Any = None  # what computes all log-probabilities
        device = stored.device if device is None else device
        arrays = stored.arrays()
        if device != "cpu":
            dim = stored.config.lstm.projection_dim
            self._plain = torch_backend().ModuleSoftmax(
                config, arrays, dim, num_words=num_words, device=device
            )
            return
        if config.kind == "adaptive":
            self._plain = _Clusters(arrays, (*cutoffs_of(config, num_words), num_words))
            return
        self._weight, self._bias = arrays["softmax.weight"], arrays["softmax.bias"]
        kernels = load_kernels()
        if kernels is None:
            self._plain = _AllWords(self._weight, self._bias)
            return
        # frequent words hold most of the probability, so their products stay in fp32
        frequent, rare = slice(0, FREQUENT_WORDS), slice(FREQUENT_WORDS, None)
        pieces: list[tuple[MatrixKind, slice]] = [("fp32", frequent), (precision, rare)]
        self._parts = [
            PackedLogSumExp(kernels, self._weight[words], self._bias[words], kind)
            for kind, words in pieces
            if len(self._bias[words])
        ]

    def nll(
        self,
        hidden: Float[np.ndarray, "X D"],
        word_ids: Int[np.ndarray, " T"],
        contexts: Int[np.ndarray, " T"] | None = None,
    ) -> Float[np.ndarray, " T"]:
        """Return the loss of every target in nats; the other rows do not affect it.

        ``contexts`` has each target's row of ``hidden``; default: one after the other.
        """
        if contexts is None:
            contexts = np.arange(len(word_ids))
        if not self._parts:
            return self._plain.nll(hidden[contexts], word_ids)
        targets = self._of_targets(hidden[contexts], word_ids)
        if self._precision == "fp32":
            # the sum over all words serves all targets of a context
            hidden = np.ascontiguousarray(hidden)
            nothing = np.zeros(len(hidden), np.float32), np.full(len(hidden), -1, np.int32)
            totals = [part(hidden, *nothing) for part in self._parts]
            return np.maximum(_log_sum_exp(np.stack(totals), axis=0)[contexts] - targets, 0)
        hidden = hidden[contexts]
        totals = [part(hidden, targets, columns) for part, columns in self._columns(word_ids)]
        return np.maximum(_log_sum_exp(np.stack(totals), axis=0) - targets, 0)

    def describe(
        self,
        hidden: Float[np.ndarray, "X D"],
        word_ids: Int[np.ndarray, " X"],
        rows: Integer[np.ndarray, " X"],
        *,
        into: DistributionTable,
    ) -> Float[np.ndarray, " X"]:
        """Write the figures of these targets to ``rows`` of a table; return the losses.

        In bf16, words that are nearly as likely as the target may be counted on the wrong side.
        """
        num_top = into.top_ids.shape[1]
        if self._parts:
            losses, entropies, ranks = self._measure(hidden, word_ids)
            into.entropies[rows] = entropies / np.float32(math.log(2))
            into.ranks[rows] = ranks
            if not num_top:
                return losses
        else:
            losses = self.nll(hidden, word_ids)
        size = max(1, MAX_SCORES // self.num_words)
        for start in range(0, len(rows), size):
            part = slice(start, start + size)
            log_probs = self.log_probs(hidden[part])  # (P, V)
            top = likeliest(log_probs, num_top)
            into.top_ids[rows[part]] = top + 1
            into.top_probs[rows[part]] = np.exp(np.take_along_axis(log_probs, top, axis=1))
            if not self._parts:
                targets = np.take_along_axis(log_probs, word_ids[part, None] - 1, axis=1)
                into.ranks[rows[part]] = 1 + (log_probs > targets).sum(axis=1)
                bits = -np.einsum("pv,pv->p", np.exp(log_probs), log_probs) / math.log(2)
                into.entropies[rows[part]] = bits
        return losses

    def _measure(
        self, hidden: np.ndarray, word_ids: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return loss, entropy in nats, and rank of every target, from the kernels."""
        hidden = np.ascontiguousarray(hidden)
        targets = self._of_targets(hidden, word_ids)
        measures = [
            part.with_mean_and_rank(hidden, targets, columns)
            for part, columns in self._columns(word_ids)
        ]
        totals, means, above = (np.stack(values) for values in zip(*measures, strict=True))
        # log-sum-exps of the parts of the vocabulary, and mean scores weighted by probability
        total = _log_sum_exp(totals, axis=0)
        mean = (np.exp(totals - total) * means).sum(axis=0)
        return np.maximum(total - targets, 0), np.maximum(total - mean, 0), 1 + above.sum(axis=0)

    def log_probs(self, hidden: Float[np.ndarray, "X D"]) -> Float[np.ndarray, "X V"]:
        if not self._parts:
            return self._plain.log_probs(hidden)
        return log_softmax(hidden @ self._weight.T + self._bias)

    def _columns(self, word_ids: np.ndarray) -> Iterator[tuple[PackedLogSumExp, np.ndarray]]:
        """Yield the parts of the vocabulary, and each target's column there; -1 if it has none."""
        classes, first = (word_ids - 1).astype(np.int32), 0
        for part in self._parts:
            inside = (classes >= first) & (classes < first + part.num_columns)
            yield part, np.where(inside, classes - np.int32(first), np.int32(-1))
            first += part.num_columns

    def _of_targets(self, hidden: np.ndarray, word_ids: np.ndarray) -> np.ndarray:
        rows = word_ids - 1
        return (hidden * self._weight[rows]).sum(axis=1) + self._bias[rows]


class _AllWords:
    """A softmax over all words in NumPy."""

    def __init__(self, weight: np.ndarray, bias: np.ndarray) -> None:
        self._weight, self._bias = weight, bias

    def nll(self, hidden: np.ndarray, word_ids: np.ndarray) -> np.ndarray:
        losses = np.empty(len(hidden), dtype=np.float32)
        size = max(1, MAX_SCORES // len(self._bias))
        for start in range(0, len(hidden), size):
            part = slice(start, start + size)
            rows = np.arange(len(hidden[part]))
            losses[part] = -self.log_probs(hidden[part])[rows, word_ids[part] - 1]
        return losses

    def log_probs(self, hidden: np.ndarray) -> np.ndarray:
        return log_softmax(linear(hidden, self._weight, self._bias))


class _Clusters:
    """An adaptive softmax: the head has the frequent words and a column for each rarer cluster."""

    def __init__(self, arrays: Mapping[str, np.ndarray], ends: tuple[int, ...]) -> None:
        self._arrays, self._ranges = arrays, list(itertools.pairwise(ends))

    def _head(self, hidden: np.ndarray) -> np.ndarray:
        weight, bias = (
            self._arrays[f"softmax.clusters.head.{part}"] for part in ("weight", "bias")
        )
        return log_softmax(hidden @ weight.T + bias)

    def _tail(self, hidden: np.ndarray, number: int) -> np.ndarray:
        inner, outer = (
            self._arrays[f"softmax.clusters.tail.{number}.{n}.weight"].T for n in (0, 1)
        )
        return log_softmax(hidden @ inner @ outer)

    def nll(self, hidden: np.ndarray, word_ids: np.ndarray) -> np.ndarray:
        # id 0 is padding, so the class of a word is its id - 1
        rows, classes, head = np.arange(len(hidden)), word_ids - 1, self._head(hidden)
        frequent = self._ranges[0][0]
        losses = -head[rows, np.minimum(classes, frequent - 1)]
        for number, (start, end) in enumerate(self._ranges):
            rare = np.flatnonzero((classes >= start) & (classes < end))
            log_probs = self._tail(hidden[rare], number)
            inside = log_probs[np.arange(len(rare)), classes[rare] - start]
            losses[rare] = -(head[rare, frequent + number] + inside)
        return losses

    def log_probs(self, hidden: np.ndarray) -> np.ndarray:
        head, frequent = self._head(hidden), self._ranges[0][0]
        tails = (
            head[:, frequent + number, None] + self._tail(hidden, number)
            for number in range(len(self._ranges))
        )
        return np.concatenate((head[:, :frequent], *tails), axis=1)


def log_softmax(scores: Float[np.ndarray, "*X V"]) -> Float[np.ndarray, "*X V"]:
    return scores - _log_sum_exp(scores, axis=-1, keepdims=True)


def _log_sum_exp(scores: np.ndarray, **axes: Any) -> np.ndarray:
    largest = scores.max(axis=axes["axis"], keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        total = np.log(np.exp(scores - largest).sum(**axes))
    return total + largest.reshape(total.shape)


def likeliest(log_probs: Float[np.ndarray, "P V"], count: int) -> Int[np.ndarray, "P K"]:
    """Return the columns of the highest values, the highest first; of equals, the first."""
    if count == 0:
        return np.empty((len(log_probs), 0), np.intp)
    candidates = np.sort(np.argpartition(-log_probs, count - 1, axis=1)[:, :count], axis=1)
    values = np.take_along_axis(log_probs, candidates, axis=1)
    order = np.argsort(-values, axis=1, kind="stable")
    return np.take_along_axis(candidates, order, axis=1)
