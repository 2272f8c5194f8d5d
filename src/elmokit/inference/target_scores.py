"""Exact losses of target words under a frozen softmax, without keeping the other scores.

In bf16 the products with rare words have bf16 factors and fp32 sums; the target's score and the
products with frequent words, which hold most of the probability, are fp32.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from elmokit.bilm.softmax import FullSoftmax, Softmax
from elmokit.kernels.inference import load_kernels
from elmokit.kernels.library import Kind
from elmokit.kernels.logsumexp import PackedLogSumExp

FREQUENT_WORDS = 1024
"""Words, by rank in the vocabulary, whose products are always fp32."""


class TargetScores:
    """Negative log-likelihoods under the whole softmax, with its current weights.

    Without compiled kernels, on other devices and for an adaptive one, ``softmax`` computes them
    itself in fp32; else ``precision`` is that of the products with rare words.
    """

    def __init__(self, softmax: Softmax, *, precision: Kind = "fp32") -> None:
        self._softmax = softmax
        self._parts: list[PackedLogSumExp] = []
        kernels = load_kernels()
        if kernels is None or not isinstance(softmax, FullSoftmax) or not softmax.weight.is_cpu:
            return
        weight, bias = softmax.weight.detach().float(), softmax.bias.detach().float()
        pieces: tuple[tuple[Kind, slice], ...] = (
            ("fp32", slice(0, FREQUENT_WORDS)),
            (precision, slice(FREQUENT_WORDS, None)),
        )
        self._parts = [
            PackedLogSumExp(kernels, weight[words], bias[words], kind)
            for kind, words in pieces
            if len(bias[words])
        ]

    @torch.inference_mode()
    def nll(self, hidden: Float[Tensor, "X D"], word_ids: Int[Tensor, " X"]) -> Float[Tensor, " X"]:
        """Return the loss of every target in nats; the other rows do not affect it."""
        hidden = hidden.float()
        if not self._parts:
            return self._softmax.nll(hidden, word_ids.to(hidden.device))
        softmax, targets = self._softmax, word_ids - 1
        assert isinstance(softmax, FullSoftmax)
        hidden = hidden.contiguous()
        scores = (hidden * softmax.weight[targets]).sum(dim=1) + softmax.bias[targets]
        totals = [part(hidden) for part in self._parts]
        return torch.stack(totals).logsumexp(dim=0) - scores
