"""Exact losses, entropies and ranks of target words under a frozen softmax, and likeliest words.

Losses, entropies and ranks come from compiled kernels without keeping the scores of the other
words. Likeliest words, and all figures where there are no kernels, come from the scores in fp32, of
which only a few rows exist at a time.

In bf16 the products with rare words have bf16 factors and fp32 sums; the target's score and the
products with frequent words, which hold most of the probability, are fp32.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int, Integer
from torch import Tensor

from elmokit.bilm.softmax import FullSoftmax, Softmax
from elmokit.errors import InputError
from elmokit.kernels.inference import load_kernels
from elmokit.kernels.layers import PackedLogSumExp
from elmokit.kernels.library import Kind

FREQUENT_WORDS = 1024
"""Words, by rank in the vocabulary, whose products are always fp32."""
MAX_SCORES = 1 << 22
"""Scores of words that are held at once."""


class TargetScores:
    """Negative log-likelihoods under the whole softmax, with its current weights, which are fp32.

    They are packed again whenever the weights change; changes in place through ``weight.data`` are
    not noticed. Without compiled kernels, on other devices and for an adaptive one, ``softmax``
    computes them itself in fp32; else ``precision`` is that of the products with rare words.
    """

    def __init__(self, softmax: Softmax, *, precision: Kind = "fp32") -> None:
        self._softmax = softmax
        self._precision: Kind = precision
        self._kernels = load_kernels() if isinstance(softmax, FullSoftmax) else None
        self._version: object = None
        self._packed: list[PackedLogSumExp] = []

    @property
    def _parts(self) -> list[PackedLogSumExp]:
        """The current weights, packed; none if the softmax computes by itself."""
        kernels, softmax = self._kernels, self._softmax
        if kernels is None or not isinstance(softmax, FullSoftmax) or not softmax.weight.is_cpu:
            return []
        version = [
            (w.data_ptr(), 0 if w.is_inference() else w._version)
            for w in (softmax.weight, softmax.bias)
        ]
        if version != self._version:
            weight, bias = softmax.weight.detach().float(), softmax.bias.detach().float()
            pieces: tuple[tuple[Kind, slice], ...] = (
                ("fp32", slice(0, FREQUENT_WORDS)),
                (self._precision, slice(FREQUENT_WORDS, None)),
            )
            self._packed = [
                PackedLogSumExp(kernels, weight[words], bias[words], kind)
                for kind, words in pieces
                if len(bias[words])
            ]
            self._version = version
        return self._packed

    @property
    def measures(self) -> bool:
        """Whether `measure` can be called: with compiled kernels."""
        return bool(self._parts)

    @torch.inference_mode()
    def nll(self, hidden: Float[Tensor, "X D"], word_ids: Int[Tensor, " X"]) -> Float[Tensor, " X"]:
        """Return the loss of every target in nats; the other rows do not affect it."""
        hidden, parts = hidden.float(), self._parts
        if not parts:
            return self._softmax.nll(hidden, word_ids.to(hidden.device))
        hidden = hidden.contiguous()
        targets = self._of_targets(hidden, word_ids)
        totals = [
            part(hidden, targets, columns) for part, columns in self._columns(parts, word_ids)
        ]
        return _not_negative(torch.stack(totals).logsumexp(dim=0) - targets)

    @torch.inference_mode()
    def measure(
        self, hidden: Float[Tensor, "X D"], word_ids: Int[Tensor, " X"]
    ) -> tuple[Float[Tensor, " X"], Float[Tensor, " X"], Int[Tensor, " X"]]:
        """Return loss (as `nll`), entropy in nats, and rank of every target.

        In bf16, words that are nearly as likely as the target may be counted on the wrong side.
        """
        hidden = hidden.float().contiguous()
        targets = self._of_targets(hidden, word_ids)
        measures = [
            part.with_others(hidden, targets, columns)
            for part, columns in self._columns(self._parts, word_ids)
        ]
        totals, means, above = (torch.stack(values) for values in zip(*measures, strict=True))
        # log-sum-exps of the parts of the vocabulary, and mean scores weighted by probability
        total = totals.logsumexp(dim=0)
        mean = ((totals - total).exp() * means).sum(dim=0)
        losses, entropies = _not_negative(total - targets), _not_negative(total - mean)
        return losses, entropies, 1 + above.sum(dim=0)

    @staticmethod
    def _columns(
        parts: list[PackedLogSumExp], word_ids: Tensor
    ) -> Iterator[tuple[PackedLogSumExp, Tensor]]:
        """Yield the parts of the vocabulary, and each target's column there; -1 if it has none."""
        classes, first = (word_ids - 1).to(torch.int32), 0
        for part in parts:
            inside = (classes >= first) & (classes < first + part.num_columns)
            yield part, torch.where(inside, classes - first, -1)
            first += part.num_columns

    def _of_targets(self, hidden: Tensor, word_ids: Tensor) -> Tensor:
        softmax, targets = self._softmax, word_ids - 1
        assert isinstance(softmax, FullSoftmax)
        return (hidden * softmax.weight[targets]).sum(dim=1) + softmax.bias[targets]


def _not_negative(values: Tensor) -> Tensor:
    """Clamp differences that only rounding makes negative."""
    return values.clamp_(min=0)


@dataclass(frozen=True)
class DistributionTable:
    """Figures of the distributions over V words at N positions."""

    ranks: Int[np.ndarray, " N"]
    """1 + the number of words that are likelier than the target."""
    entropies: Float[np.ndarray, " N"]
    """In bits."""
    top_ids: Int[np.ndarray, "N K"]
    """Word ids of the likeliest words, by descending probability."""
    top_probs: Float[np.ndarray, "N K"]


class WordDistributions:
    """Measures distributions of a softmax.

    Args:
        softmax: Frozen.
        scores: Of the same softmax.
        num_top: K, the likeliest words to name; at most V.

    Raises:
        InputError: if ``num_top`` is negative or above V.
    """

    def __init__(self, softmax: Softmax, scores: TargetScores, *, num_top: int = 0) -> None:
        if not 0 <= num_top <= softmax.num_words:
            raise InputError(
                f"`top` must be between 0 and the vocabulary's {softmax.num_words} words, got "
                f"{num_top}."
            )
        self._softmax, self._scores, self._num_top = softmax, scores, num_top

    def table(self, num_positions: int) -> DistributionTable:
        """Return a table to be filled by `measure`."""
        shape = (num_positions, self._num_top)
        return DistributionTable(
            ranks=np.empty(num_positions, np.int32),
            entropies=np.empty(num_positions, np.float32),
            top_ids=np.empty(shape, np.int32),
            top_probs=np.empty(shape, np.float32),
        )

    @torch.inference_mode()
    def measure(
        self,
        hidden: Float[Tensor, "X D"],
        word_ids: Int[Tensor, " X"],
        rows: Integer[np.ndarray, " X"],
        *,
        into: DistributionTable,
    ) -> Float[Tensor, " X"]:
        """Write the figures at outputs ``hidden``, with these targets, to ``rows`` of a table.

        Returns:
            The losses, as `TargetScores.nll`.
        """
        measured = self._scores.measures
        if measured:
            nats, entropies, ranks = self._scores.measure(hidden, word_ids)
            into.entropies[rows] = (entropies / math.log(2)).numpy()
            into.ranks[rows] = ranks.numpy()
        else:
            nats = self._scores.nll(hidden, word_ids)
        size = max(1, MAX_SCORES // self._softmax.num_words)
        for start in range(0, len(rows) if self._num_top or not measured else 0, size):
            part = slice(start, start + size)
            log_probs = self._softmax.scores(hidden[part].float()).log_softmax(dim=1)  # (P, V)
            top = log_probs.topk(self._num_top, dim=1)
            into.top_ids[rows[part]] = top.indices.cpu().numpy() + 1
            into.top_probs[rows[part]] = top.values.exp().cpu().numpy()
            if not measured:
                targets = log_probs.gather(1, word_ids[part].unsqueeze(1) - 1)
                into.ranks[rows[part]] = 1 + (log_probs > targets).sum(dim=1).cpu().numpy()
                bits = -torch.einsum("pv,pv->p", log_probs.exp(), log_probs) / math.log(2)
                into.entropies[rows[part]] = bits.cpu().numpy()
        return nats
