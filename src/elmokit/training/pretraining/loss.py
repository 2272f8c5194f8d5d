"""The loss of a biLM on a window of text: both directions, dropout, (sampled) softmax."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import get_args

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from elmokit.bilm.bilm import BiLM, BiLMState, Direction
from elmokit.bilm.softmax import Softmax
from elmokit.corpus.order_and_packing import WindowBatch
from elmokit.training.fused.char_cnn import encode_tokens
from elmokit.training.fused.lstm import run_direction_fused
from elmokit.training.fused.softmax import training_nlls
from elmokit.training.loop import derived_seed


@dataclass(frozen=True)
class WindowTensors:
    """A `WindowBatch` on the device, with U rounded up."""

    token_ids: Tensor
    """Character rows (U, C), or word ids (U,) for word-input models.

    Padded to one of a few U: quick kernels keep megabytes for each matrix shape
    (`elmokit.training.cpu_settings`).
    """
    forward_inputs: Tensor
    backward_inputs: Tensor
    forward_targets: Tensor
    backward_targets: Tensor
    restarts: Tensor | None = None

    @classmethod
    def from_batch(
        cls, batch: WindowBatch, *, word_input: bool, device: torch.device
    ) -> "WindowTensors":
        token_ids = batch.word_ids if word_input else batch.char_ids
        num_padding = _rounded_up(len(token_ids)) - len(token_ids)
        arrays = (
            np.pad(token_ids, [(0, num_padding), *[(0, 0)] * (token_ids.ndim - 1)]),
            batch.forward_inputs, batch.backward_inputs,
            batch.forward_targets, batch.backward_targets,
        )  # fmt: skip
        tensors = (torch.from_numpy(array.astype(np.int64, copy=False)) for array in arrays)
        restarts = None if batch.restarts is None else torch.from_numpy(batch.restarts).to(device)
        return cls(*(tensor.to(device) for tensor in tensors), restarts=restarts)

    @property
    def num_targets(self) -> int:
        return self.forward_targets.numel()


def _rounded_up(num_tokens: int) -> int:
    """Round up to one of eight sizes per power of two."""
    block = 1 << max(0, (num_tokens - 1).bit_length() - 4)
    return num_tokens + -num_tokens % block


def row_dropout(
    probability: float, *, seed: int, num_rows: int, first_row: int, device: torch.device
) -> Callable[[Tensor], Tensor]:
    """Return a dropout of (B, T, X) tensors, whose successive calls draw different masks.

    Masks are drawn for the ``num_rows`` of the global batch, in which this process begins at
    ``first_row``: any number of processes drops the same values. ``seed`` must be different for
    every step and direction.
    """
    generator = torch.Generator(device).manual_seed(seed)

    def drop(x: Tensor) -> Tensor:
        if probability == 0:
            return x
        keep = torch.empty(num_rows, *x.shape[1:], device=x.device, dtype=x.dtype)
        keep.bernoulli_(1 - probability, generator=generator).div_(1 - probability)
        return x * keep[first_row : first_row + x.shape[0]]

    return drop


class BiLMLoss(nn.Module):
    """The training loss; a module, so that gradients can be averaged over processes.

    ``seed`` and the step determine dropout and candidates. ``num_rows`` counts the global batch, in
    which this process begins at ``first_row``.

    Source: Peters et al. 2018, section 3.1 (there the sum of both directions, here the mean).
    """

    def __init__(
        self,
        model: BiLM,
        softmax: Softmax,
        *,
        dropout: float,
        seed: int,
        num_rows: int,
        first_row: int = 0,
    ) -> None:
        super().__init__()
        self.model, self.softmax = model, softmax
        self.dropout, self.seed = dropout, seed
        self.num_rows, self.first_row = num_rows, first_row

    def forward(
        self, batch: WindowTensors, state: BiLMState, step: int
    ) -> tuple[Tensor, Tensor, BiLMState]:
        """Return forward and backward loss (mean nats per target) and the new, detached state."""
        if batch.restarts is not None:
            state = state.zeroed(batch.restarts)
        tokens = encode_tokens(self.model.token_encoder, batch.token_ids)  # (U, D)
        hiddens, states = [], []
        inputs = (batch.forward_inputs, batch.backward_inputs)
        for index, direction in enumerate(get_args(Direction)):
            dropout = row_dropout(
                self.dropout, seed=derived_seed(self.seed, step, index, 0), device=tokens.device,
                num_rows=self.num_rows, first_row=self.first_row,
            )  # fmt: skip
            x = functional.embedding(inputs[index], tokens)  # (B, T, D)
            top, new_state = run_direction_fused(
                self.model, direction, x, state=state.direction(direction), dropout=dropout
            )
            hiddens.append(dropout(top).flatten(0, 1))  # (B*T, D)
            states.append(new_state)
        targets = [batch.forward_targets.flatten(), batch.backward_targets.flatten()]
        forward_loss, backward_loss = self._losses(hiddens, targets, step)
        after = BiLMState.from_directions(*states).detach()
        # autocast computes in bf16; the carried state keeps its dtype
        after = BiLMState(after.hidden.to(state.hidden), after.cell.to(state.cell))
        return forward_loss, backward_loss, after

    def _losses(self, hiddens: list[Tensor], word_ids: list[Tensor], step: int) -> list[Tensor]:
        # drawn on the CPU: the same candidates on every device and in every process
        seeds = [derived_seed(self.seed, step, index, 1) for index in range(2)]
        generators = [torch.Generator().manual_seed(seed) for seed in seeds]
        losses = training_nlls(self.softmax, hiddens, word_ids, generators=generators)
        return [loss.mean() for loss in losses]
