"""Masks, lengths and order: the small tensor operations that padded batches need."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


def reverse_sequences(
    x: Float[Tensor, "B T X"], lengths: Int[Tensor, " B"]
) -> Float[Tensor, "B T X"]:
    """Reverse the first ``lengths[b]`` positions of every row; padding stays at the end.

    Its own inverse. The backward direction starts at ``</S>``, never at padding.
    """
    positions = torch.arange(x.shape[1], device=x.device).unsqueeze(0)  # (1, T)
    ends = lengths.unsqueeze(1)  # (B, 1)
    index = torch.where(positions < ends, ends - 1 - positions, positions)  # (B, T)
    return x.gather(1, index.unsqueeze(2).expand_as(x))


def lengths_of(mask: Bool[Tensor, "B T"]) -> Int[Tensor, " B"]:
    """Return the number of real positions of each row.

    Raises:
        ValueError: if a padded position stands before a real one.
    """
    lengths = mask.sum(dim=1)
    expected = torch.arange(mask.shape[1], device=mask.device).unsqueeze(0) < lengths.unsqueeze(1)
    if not torch.equal(mask, expected):
        raise ValueError(
            "Padding (rows of id 0) must stand at the end of each sentence, not before or between "
            "real tokens."
        )
    return lengths


def masked_softmax(
    logits: Float[Tensor, "*Shape"], mask: Bool[Tensor, "*#Shape"], *, dim: int = -1
) -> Float[Tensor, "*Shape"]:
    """Softmax over the real positions of axis ``dim``; the others get 0.

    Where nothing is real, all is 0: such a row attends to nothing.
    """
    hidden = logits.masked_fill(~mask, torch.finfo(logits.dtype).min)
    return torch.softmax(hidden, dim=dim) * mask


def masked_mean(x: Float[Tensor, "B T X"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B X"]:
    """Return the mean over the real positions of each row; 0 for a row without any."""
    total = x.masked_fill(~mask.unsqueeze(2), 0).sum(dim=1)
    return total / mask.sum(dim=1).clamp(min=1).unsqueeze(1)


def masked_max(x: Float[Tensor, "B T X"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B X"]:
    """Return the largest value over the real positions of each row; 0 for a row without any."""
    if x.shape[1] == 0:
        return x.new_zeros(x.shape[0], x.shape[2])
    largest = x.masked_fill(~mask.unsqueeze(2), -torch.inf).amax(dim=1)
    return largest.masked_fill(~mask.any(dim=1).unsqueeze(1), 0)
