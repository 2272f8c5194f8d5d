"""Small tensor operations on padded batches."""

import torch
from torch import Tensor

from elmokit.shapes import Bool, Float, Int


def reverse_sequences(
    x: Float[Tensor, "B T X"], lengths: Int[Tensor, " B"]
) -> Float[Tensor, "B T X"]:
    """Reverse the first ``lengths[b]`` positions of each row; padding stays at the end."""
    positions = torch.arange(x.shape[1], device=x.device).unsqueeze(0)  # (1, T)
    ends = lengths.unsqueeze(1)  # (B, 1)
    index = torch.where(positions < ends, ends - 1 - positions, positions)  # (B, T)
    rows = torch.arange(x.shape[0], device=x.device).unsqueeze(1)  # (B, 1)
    # whole vectors: on the CPU `gather` moves numbers one by one, forwards and backwards
    return x.flatten(0, 1).index_select(0, (index + rows * x.shape[1]).flatten()).view_as(x)


def mask_of(ids: Int[Tensor, "B T C"] | Int[Tensor, "B T"]) -> Bool[Tensor, "B T"]:
    return (ids > 0).any(dim=2) if ids.dim() == 3 else ids > 0


def lengths_of(mask: Bool[Tensor, "B T"]) -> Int[Tensor, " B"]:
    """Return the number of real positions of each row; `ValueError` for padding before one."""
    lengths = mask.sum(dim=1)
    expected = torch.arange(mask.shape[1], device=mask.device).unsqueeze(0) < lengths.unsqueeze(1)
    if not torch.equal(mask, expected):
        raise ValueError(
            "Padding (rows of id 0) must be at the end of each sentence, not before or between "
            f"real tokens as in sentence {int((mask != expected).any(dim=1).nonzero()[0])}."
        )
    return lengths


def masked_softmax(
    logits: Float[Tensor, "*Shape"], mask: Bool[Tensor, "*#Shape"], *, dim: int = -1
) -> Float[Tensor, "*Shape"]:
    """Softmax over the real positions of axis ``dim``; the others, all if none is real, get 0."""
    hidden = logits.masked_fill(~mask, torch.finfo(logits.dtype).min)
    return torch.softmax(hidden, dim=dim) * mask


def masked_mean(x: Float[Tensor, "B T X"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B X"]:
    """Return the mean over the real positions of each row; 0 if there are none."""
    total = x.masked_fill(~mask.unsqueeze(2), 0).sum(dim=1)
    return total / mask.sum(dim=1).clamp(min=1).unsqueeze(1)


def masked_max(x: Float[Tensor, "B T X"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B X"]:
    """Return the maximum over the real positions of each row; 0 if there are none."""
    if x.shape[1] == 0:
        return x.new_zeros(x.shape[0], x.shape[2])
    largest = x.masked_fill(~mask.unsqueeze(2), -torch.inf).amax(dim=1)
    return largest.masked_fill(~mask.any(dim=1).unsqueeze(1), 0)
