"""The sampled output layer for training, in few passes.

One pass turns logits into probabilities in place and keeps them for the gradient. Both directions
gather their rows of the weights together, so there is one vocabulary-sized gradient, not two.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from elmokit.bilm.softmax import SampledSoftmax, Softmax
from elmokit.kernels.training import TrainingKernels, check_ids, fp32_empty, fp32_zeros, kernels_for

ROWS_TOGETHER = 512  # their logits fit the processor's cache


def training_nlls(
    softmax: Softmax,
    hiddens: Sequence[Tensor],
    word_ids: Sequence[Tensor],
    *,
    generators: Sequence[torch.Generator],
) -> list[Tensor]:
    """Return ``training_nll`` of each direction: hidden (X, D), targets (X,) -> nats (X,)."""
    available = kernels_for(softmax.weight) if isinstance(softmax, SampledSoftmax) else None
    if not isinstance(softmax, SampledSoftmax) or available is None:
        rows = zip(hiddens, word_ids, generators, strict=True)
        return [softmax.training_nll(hidden, ids, generator=g) for hidden, ids, g in rows]
    kernels, dtype = available
    check_ids(torch.cat(list(word_ids)), lowest=1, highest=softmax.num_words, what="target ids")
    draws = [softmax.sampler.draw(softmax.num_samples, generator=g) for g in generators]
    targets = [ids - 1 for ids in word_ids]
    # targets and candidates of both directions, gathered at once
    pieces = [
        rows for target, draw in zip(targets, draws, strict=True) for rows in (target, draw.classes)
    ]
    sizes = [len(rows) for rows in pieces]
    losses = []
    with torch.autocast("cpu", enabled=False):
        weights, biases = _Gather.apply(kernels, softmax.weight, softmax.bias, torch.cat(pieces))
        weights, biases = weights.split(sizes), biases.split(sizes)
        for index, (hidden, target, draw) in enumerate(zip(hiddens, targets, draws, strict=True)):
            hidden = hidden.float()
            # frequent words are drawn more often; taking off how often makes up for it
            target_bias, bias = (
                biases[k] - softmax.sampler.log_expected_count(pieces[k], draw.num_tries)
                for k in (2 * index, 2 * index + 1)
            )
            target_logits = (hidden * weights[2 * index]).sum(dim=-1) + target_bias
            # where a row's target is among the candidates: it is no negative of its own
            place = target.new_full((softmax.num_words,), -1)
            place[draw.classes] = torch.arange(len(draw.classes), device="cpu")
            weight, hits = weights[2 * index + 1], place[target]
            losses.append(
                _SampledLoss.apply(kernels, dtype, hidden, weight, bias, target_logits, hits)
            )
    return losses


class _Gather(torch.autograd.Function):
    """Rows of the output layer: weight (V, D), bias (V,), rows (R,) -> (R, D), (R,)."""

    @staticmethod
    def forward(
        ctx: Any, kernels: TrainingKernels, weight: Tensor, bias: Tensor, rows: Tensor
    ) -> tuple[Tensor, Tensor]:
        ctx.kernels, ctx.shape = kernels, weight.shape
        ctx.save_for_backward(rows)
        return weight[rows], bias[rows]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_weights: Tensor, grad_biases: Tensor) -> tuple[Any, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        (rows,) = ctx.saved_tensors
        weight, bias = fp32_zeros(*ctx.shape), fp32_zeros(ctx.shape[0], 1)
        ctx.kernels.scatter_rows(weight, rows, grad_weights.contiguous())
        ctx.kernels.scatter_rows(bias, rows, grad_biases.contiguous().unsqueeze(1))
        return None, weight, bias.squeeze(1), None


class _SampledLoss(torch.autograd.Function):
    """hidden (X, D), weight (K, D), bias (K,), target logits (X,), hits (X,) -> nats (X,).

    ``hits`` tells which candidate is the row's own target, or -1.
    """

    @staticmethod
    def forward(ctx: Any, kernels: TrainingKernels, dtype: torch.dtype, *tensors: Tensor) -> Tensor:
        hidden, weight, bias, target_logits, hits = tensors
        hidden, weight = hidden.to(dtype), weight.to(dtype)
        num_rows, num_candidates = len(hidden), len(weight)
        losses, target_probs = fp32_empty(num_rows), fp32_empty(num_rows)
        buffers = fp32_empty(torch.get_num_threads() * num_candidates)
        probs = torch.empty(num_rows, num_candidates, dtype=dtype, device="cpu")
        for start in range(0, num_rows, ROWS_TOGETHER):
            part = slice(start, start + ROWS_TOGETHER)
            logits = torch.mm(hidden[part], weight.t(), out=probs[part])  # become probabilities
            kernels.call(
                "softmax", type=kernels.types[dtype], num_rows=len(logits),
                num_candidates=num_candidates, logits=logits, bias=bias,
                target_logits=target_logits[part], hits=hits[part],
                losses=losses[part], target_probs=target_probs[part], buffers=buffers,
            )  # fmt: skip
        ctx.kernels = kernels
        ctx.save_for_backward(hidden, weight, probs, target_probs)
        return losses

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        hidden, weight, probs, target_probs = ctx.saved_tensors
        grad = grad.contiguous()
        scaled = (hidden.float() * grad.unsqueeze(1)).to(hidden.dtype)
        grad_hidden = (probs @ weight).float() * grad.unsqueeze(1)
        grad_weight = (probs.t() @ scaled).float()
        grad_bias = ctx.kernels.column_sums(probs, grad)
        return None, None, grad_hidden, grad_weight, grad_bias, grad * (target_probs - 1), None
