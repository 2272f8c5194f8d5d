"""Dropout whose masks are a function of seed, step and row: there is no random state to save."""

import torch
from torch import Tensor


class RowDropout:
    """Drop values of (B, T, X) tensors; successive calls within a step draw different masks.

    Masks are drawn for the ``num_rows`` of the global batch, in which this process begins at
    ``first_row``: any number of processes drops the same values. ``seed`` must be different for
    every step and direction.
    """

    def __init__(
        self, probability: float, *, seed: int, num_rows: int, first_row: int, device: torch.device
    ) -> None:
        self.probability = probability
        self._num_rows = num_rows
        self._first_row = first_row
        self._generator = torch.Generator(device).manual_seed(seed)

    def __call__(self, x: Tensor) -> Tensor:
        """Apply dropout."""
        if self.probability == 0:
            return x
        keep = torch.empty(self._num_rows, *x.shape[1:], device=x.device, dtype=x.dtype)
        keep.bernoulli_(1 - self.probability, generator=self._generator).div_(1 - self.probability)
        return x * keep[self._first_row : self._first_row + x.shape[0]]


def derived_seed(*parts: int) -> int:
    """Hash integers into one 63-bit seed (the finalizer of splitmix64 over each part)."""
    mixed = 0x9E3779B97F4A7C15
    for part in parts:
        mixed = (mixed ^ part) * 0xBF58476D1CE4E5B9 % 2**64
        mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB % 2**64
        mixed ^= mixed >> 31
    return mixed >> 1
