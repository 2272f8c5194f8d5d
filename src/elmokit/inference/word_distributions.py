"""What a direction expects at each position: entropy, rank of the word that came, likeliest words.

Entropy and rank come with the losses (`TargetScores.measure`) where kernels are compiled; likeliest
words, and all elsewhere, from the scores in fp32, of which only a few rows exist at a time.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int, Integer
from torch import Tensor

from elmokit.bilm.softmax import Softmax
from elmokit.errors import InputError
from elmokit.inference.target_scores import TargetScores

MAX_SCORES = 1 << 22
"""Held at once; products of many rows are faster."""


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
