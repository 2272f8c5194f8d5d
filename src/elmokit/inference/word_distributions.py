"""What a direction expects at each position: entropy, rank of the word that came, likeliest words.

In fp32, from all scores, of which only a few rows exist at a time.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int, Integer
from torch import Tensor

from elmokit.bilm.softmax import MAX_LOGITS, Softmax
from elmokit.errors import InputError


@dataclass(frozen=True)
class DistributionTable:
    """Figures of the distributions over V words at N positions."""

    ranks: Int[np.ndarray, " N"]
    """1 + the number of words that are likelier than the target."""
    entropies: Float[np.ndarray, " N"]
    """In bits."""
    top_ids: Int[np.ndarray, "N K"]
    """Word ids of the likeliest words, by falling probability."""
    top_probs: Float[np.ndarray, "N K"]


class WordDistributions:
    """Measures distributions of a softmax.

    Args:
        softmax: Frozen.
        num_top: K, the likeliest words to name; at most V.

    Raises:
        InputError: if ``num_top`` is negative or above V.
    """

    def __init__(self, softmax: Softmax, *, num_top: int = 0) -> None:
        if not 0 <= num_top <= softmax.num_words:
            raise InputError(
                f"`top` must be between 0 and the vocabulary's {softmax.num_words} words, got "
                f"{num_top}."
            )
        self._softmax, self._num_top = softmax, num_top

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
    ) -> None:
        """Write the figures at outputs ``hidden``, with these targets, to ``rows`` of a table."""
        size = max(1, MAX_LOGITS // self._softmax.num_words)
        for start in range(0, len(rows), size):
            part = slice(start, start + size)
            scores = self._softmax.scores(hidden[part].float())  # (P, V)
            targets = scores.gather(1, word_ids[part].unsqueeze(1) - 1)
            into.ranks[rows[part]] = 1 + (scores > targets).sum(dim=1).cpu().numpy()
            classes = scores.topk(self._num_top, dim=1).indices
            scores -= scores.amax(dim=1, keepdim=True)
            weights = scores.exp()
            total = weights.sum(dim=1)
            nats = total.log() - torch.einsum("pv,pv->p", weights, scores) / total
            into.entropies[rows[part]] = (nats / math.log(2)).cpu().numpy()
            into.top_ids[rows[part]] = classes.cpu().numpy() + 1
            into.top_probs[rows[part]] = (weights.gather(1, classes) / total[:, None]).cpu().numpy()
