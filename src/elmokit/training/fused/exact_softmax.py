"""The exact output layer for training, in the memory of a few rows.

The mean loss is one number, so its gradient is known up to a factor and computed with the loss.
Each block of logits becomes probabilities, then gradients, and is dropped.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from elmokit.bilm.softmax import FullSoftmax
from elmokit.kernels.training import TrainingKernels, check_ids, fp32_empty, fp32_zeros, kernels_for
from elmokit.training.fused.softmax import SoftmaxRows

MAX_LOGITS = 1 << 23  # of a block: few enough to save memory, enough for products at full speed


def exact_loss(softmax: FullSoftmax, hidden: Tensor, word_ids: Tensor) -> Tensor:
    """Return the mean of ``softmax.nll`` in nats: hidden (X, D), targets (X,) -> ()."""
    available = kernels_for(softmax.weight)
    if available is None:
        return softmax.nll(hidden, word_ids).mean()
    check_ids(word_ids, lowest=1, highest=softmax.num_words, what="target ids")
    with torch.autocast("cpu", enabled=False):
        return _ExactLoss.apply(*available, hidden, softmax.weight, softmax.bias, word_ids - 1)


class _ExactLoss(torch.autograd.Function):
    """hidden (X, D), weight (V, D), bias (V,), targets (X,) -> mean nats ()."""

    @staticmethod
    def forward(ctx: Any, kernels: TrainingKernels, dtype: torch.dtype, *tensors: Tensor) -> Tensor:
        hidden, weight, bias, targets = tensors
        num_targets, num_words = len(hidden), len(weight)
        target_logits = (hidden.float() * weight[targets]).sum(dim=-1) + bias[targets]
        softmax = SoftmaxRows(
            kernels, hidden.to(dtype), weight.to(dtype), bias, target_logits, targets
        )
        grad_hidden, grad_weight = fp32_empty(*hidden.shape), fp32_zeros(*weight.shape)
        grad_bias = fp32_zeros(num_words)
        rows = max(1, min(num_targets, MAX_LOGITS // num_words))
        block = torch.empty(rows, num_words, dtype=dtype, device="cpu")
        for start in range(0, num_targets, rows):
            part = slice(start, start + rows)
            inputs, own = softmax.hidden[part], targets[part].unsqueeze(1)
            values = softmax.probs(part, out=block[: len(inputs)])
            # the gradient of the logits: probabilities, minus one at the target
            values.scatter_(1, own, (softmax.target_probs[part].unsqueeze(1) - 1).to(dtype))
            grad_hidden[part] = values @ softmax.weight
            if dtype == torch.float32:
                grad_weight.addmm_(values.t(), inputs)
            else:
                grad_weight += values.t() @ inputs
            grad_bias += kernels.column_sums(values)
        ctx.save_for_backward(grad_hidden, grad_weight, grad_bias)
        ctx.hidden_dtype = hidden.dtype
        return softmax.losses.mean()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        grad_hidden, grad_weight, grad_bias = ctx.saved_tensors
        factor = grad / len(grad_hidden)
        grad_hidden = (grad_hidden * factor).to(ctx.hidden_dtype)
        return None, None, grad_hidden, grad_weight * factor, grad_bias * factor, None
