"""What pre-training minimizes: the mean of both language models' losses on one window of text."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from elmokit.corpus.windows import WindowBatch
from elmokit.nn.bilm import BiLM, BiLMState, Direction
from elmokit.nn.softmax import Softmax
from elmokit.training.dropout import RowDropout, derived_seed
from elmokit.training.fused_lstm import run_fused


@dataclass(frozen=True)
class WindowTensors:
    """A `WindowBatch` on the device. Shapes as there."""

    token_ids: Tensor
    """Character rows (U, C), or word ids (U,) for word-input models."""
    forward_inputs: Tensor
    backward_inputs: Tensor
    forward_targets: Tensor
    backward_targets: Tensor

    @classmethod
    def from_batch(
        cls, batch: WindowBatch, *, word_input: bool, device: torch.device
    ) -> "WindowTensors":
        """Move a batch of NumPy arrays to ``device``."""

        def tensor(array: np.ndarray) -> Tensor:
            return torch.from_numpy(array.astype(np.int64, copy=False)).to(device)

        return cls(
            tensor(batch.word_ids if word_input else batch.char_ids),
            tensor(batch.forward_inputs),
            tensor(batch.backward_inputs),
            tensor(batch.forward_targets),
            tensor(batch.backward_targets),
        )

    @property
    def num_targets(self) -> int:
        """Targets of one direction."""
        return self.forward_targets.numel()


class BiLMLoss(nn.Module):
    """The training loss of a biLM with its softmax.

    A module, so that gradients can be averaged over processes.

    Args:
        model: The biLM.
        softmax: Its output layer, shared by both directions.
        dropout: Share of values dropped.
        seed: Of dropout and candidates; step by step they are a function of it.
        num_rows: Rows of the global batch.
        first_row: This process' first row in it.

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
        self.model = model
        self.softmax = softmax
        self.dropout = dropout
        self.seed = seed
        self.num_rows = num_rows
        self.first_row = first_row

    def forward(
        self, batch: WindowTensors, state: BiLMState, step: int
    ) -> tuple[Tensor, Tensor, BiLMState]:
        """Return forward and backward loss (mean nats per target) and the new, detached state."""
        tokens = self.model.encode_tokens(batch.token_ids)  # (U, D)
        forward_loss, forward_state = self._direction("forward", tokens, batch, state, step)
        backward_loss, backward_state = self._direction("backward", tokens, batch, state, step)
        new_state = BiLMState.from_directions(forward_state, backward_state).detach()
        # autocast computes in bf16; what is carried on keeps its width
        new_state = BiLMState(new_state.hidden.to(state.hidden), new_state.cell.to(state.cell))
        return forward_loss, backward_loss, new_state

    def _direction(
        self,
        direction: Direction,
        tokens: Tensor,
        batch: WindowTensors,
        state: BiLMState,
        step: int,
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        index = 0 if direction == "forward" else 1
        inputs, targets = (
            (batch.forward_inputs, batch.forward_targets)
            if direction == "forward"
            else (batch.backward_inputs, batch.backward_targets)
        )
        dropout = RowDropout(
            self.dropout,
            seed=derived_seed(self.seed, step, index, 0),
            num_rows=self.num_rows,
            first_row=self.first_row,
            device=tokens.device,
        )
        candidates = torch.Generator().manual_seed(derived_seed(self.seed, step, index, 1))
        outputs, new_state = self.model.run_direction(
            direction,
            functional.embedding(inputs, tokens),
            state=state.direction(direction),
            dropout=dropout,
            run_layer=run_fused,
        )
        top = dropout(outputs[-1]).flatten(0, 1)  # (B*T, D)
        return self.softmax.training_nll(
            top, targets.flatten(), generator=candidates
        ).mean(), new_state
