"""Attention of the task models.

B rows of N positions (a premise, a context) and M positions (a hypothesis, a question), X features.
Padded positions get no attention; a position with nothing to attend to gets zeros.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from elmokit.bilm.masking import masked_softmax
from elmokit.shapes import Bool, Float

FRESH_NO_ATTEND = -1.0  # initial score of attending to nothing


def attend(
    logits: Float[Tensor, "B N M"], values: Float[Tensor, "B M X"], mask: Bool[Tensor, "B M"]
) -> Float[Tensor, "B N X"]:
    """Return the mean of ``values`` for each of N positions, weighted by a softmax over M."""
    weights = masked_softmax(logits, mask.unsqueeze(1))  # (B, N, M)
    return weights @ values.masked_fill(~mask.unsqueeze(2), 0)


def soft_align(
    a: Float[Tensor, "B N X"], b: Float[Tensor, "B M X"],
    mask_a: Bool[Tensor, "B N"], mask_b: Bool[Tensor, "B M"],
) -> tuple[Float[Tensor, "B N X"], Float[Tensor, "B M X"]]:  # fmt: skip
    """Return what each position of ``a`` finds in ``b`` by dot products, and vice versa.

    Source: Chen et al. 2017 (ESIM), section 3.2.
    """
    a = a.masked_fill(~mask_a.unsqueeze(2), 0)
    b = b.masked_fill(~mask_b.unsqueeze(2), 0)
    logits = a @ b.transpose(1, 2)  # (B, N, M)
    from_b = attend(logits, b, mask_b) * mask_a.unsqueeze(2)
    from_a = attend(logits.transpose(1, 2), a, mask_a) * mask_b.unsqueeze(2)
    return from_b, from_a


class TrilinearScore(nn.Module):
    """Score pairs of positions: ``u · c_i + v · q_j + w · (c_i ⊙ q_j)`` with learned u, v, w.

    Shape: c (B, N, X), q (B, M, X) -> (B, N, M). Source: Seo et al. 2017 (BiDAF), section 2.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(3, dim))

    def reset_parameters(self, generator: torch.Generator) -> None:
        bound = (6 / (self.weight.numel() + 1)) ** 0.5
        nn.init.uniform_(self.weight, -bound, bound, generator=generator)

    def forward(
        self, c: Float[Tensor, "B N X"], q: Float[Tensor, "B M X"]
    ) -> Float[Tensor, "B N M"]:
        u, v, w = self.weight
        # w · (c ⊙ q) = (w ⊙ c) · q: the products of all pairs are never stored.
        return (c @ u).unsqueeze(2) + (q @ v).unsqueeze(1) + (c * w) @ q.transpose(1, 2)


class BiDAFAttention(nn.Module):
    """Attention in both directions between a context and a question.

    Each context position gets a mean of the question, c̃_i. All get the same mean of the context,
    q̃, weighted by each position's best score with the question.

    Shape: context (B, N, X), question (B, M, X) -> [c; c̃; c ⊙ c̃; c ⊙ q̃] (B, N, 4X).
    Source: Seo et al. 2017 (BiDAF), section 2; Clark and Gardner 2018 (DocQA).
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.score = TrilinearScore(dim)

    def forward(
        self, context: Float[Tensor, "B N X"], question: Float[Tensor, "B M X"],
        context_mask: Bool[Tensor, "B N"], question_mask: Bool[Tensor, "B M"],
    ) -> Float[Tensor, "B N X4"]:  # fmt: skip
        context = context.masked_fill(~context_mask.unsqueeze(2), 0)
        question = question.masked_fill(~question_mask.unsqueeze(2), 0)
        logits = self.score(context, question)  # (B, N, M)
        attended = attend(logits, question, question_mask)
        if question.shape[1] == 0:
            summary = torch.zeros_like(context[:, :1])
        else:
            lowest = torch.finfo(logits.dtype).min
            best = logits.masked_fill(~question_mask.unsqueeze(1), lowest).amax(dim=2)  # (B, N)
            summary = attend(best.unsqueeze(1), context, context_mask)  # (B, 1, X)
            summary = summary * question_mask.any(dim=1)[:, None, None]
        merged = torch.cat((context, attended, context * attended, context * summary), dim=2)
        return merged * context_mask.unsqueeze(2)


class SelfAttention(nn.Module):
    """Attention of a text to its own other positions, or to nothing.

    Every softmax also has a learned constant score without a vector, so the weights of a position
    sum to less than 1. No position attends to itself.

    Shape: x (B, N, X), mask (B, N) -> [x; x̃; x ⊙ x̃] (B, N, 3X).
    Source: Clark and Gardner 2018 (DocQA), self-attention.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.score = TrilinearScore(dim)
        self.no_attend = nn.Parameter(torch.full((), FRESH_NO_ATTEND))

    def reset_parameters(self, generator: torch.Generator) -> None:
        self.score.reset_parameters(generator)
        nn.init.constant_(self.no_attend, FRESH_NO_ATTEND)

    def forward(
        self, x: Float[Tensor, "B N X"], mask: Bool[Tensor, "B N"]
    ) -> Float[Tensor, "B N X3"]:
        x = x.masked_fill(~mask.unsqueeze(2), 0)
        num_rows, length, _ = x.shape
        others = ~torch.eye(length, dtype=torch.bool, device=x.device)
        visible = functional.pad(mask.unsqueeze(1) & others, (0, 1), value=True)  # (B, N, N + 1)
        nothing = self.no_attend.to(x.dtype).expand(num_rows, length, 1)
        logits = torch.cat((self.score(x, x), nothing), dim=2)
        attended = masked_softmax(logits, visible)[:, :, :-1] @ x
        return torch.cat((x, attended, x * attended), dim=2) * mask.unsqueeze(2)


class SelfAttentivePooling(nn.Module):
    """Mean of positions, weighted by a softmax of one learned score each: (B, T, X) -> (B, X).

    Source: McCann et al. 2017 (BCN), self-attentive pooling.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.score = nn.Linear(dim, 1, bias=False)  # a bias cancels in the softmax

    def forward(self, x: Float[Tensor, "B T X"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B X"]:
        x = x.masked_fill(~mask.unsqueeze(2), 0)
        weights = masked_softmax(self.score(x).squeeze(2), mask)  # (B, T)
        return (weights.unsqueeze(1) @ x).squeeze(1)
