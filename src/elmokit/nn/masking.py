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
