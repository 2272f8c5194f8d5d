"""The updates of a run: its loss, what it reads and changes, how it is saved and restored."""

import dataclasses
import logging
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any, get_args

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from elmokit.bilm.bilm import BiLM, BiLMState, Direction
from elmokit.bilm.softmax import Softmax
from elmokit.config import from_dict
from elmokit.corpus.packing import WindowBatch
from elmokit.corpus.read_ahead import read_ahead
from elmokit.corpus.stream import WindowStream
from elmokit.jobs.job import Pieces
from elmokit.training.checkpoints import Checkpoint, restore_optimizer, restoring, save_checkpoint
from elmokit.training.fused.char_cnn import encode_tokens
from elmokit.training.fused.lstm import run_direction_fused
from elmokit.training.fused.softmax import training_nlls
from elmokit.training.loop import StepReport, StepResult, derived_seed, train
from elmokit.training.optimizers import WeightAverage
from elmokit.training.pretraining.start import Start
from elmokit.training.schedules import Budget, Progress
from elmokit.weights.model_dir import PretrainedBiLM

log = logging.getLogger(__name__)

BATCHES_AHEAD = 2  # prepared in the background


@dataclass(frozen=True)
class WindowTensors:
    """A `WindowBatch` on the device, with U rounded up."""

    token_ids: Tensor
    """Character rows (U, C), or word ids (U,) for word-input models.

    Padded to one of a few U: quick kernels keep megabytes for each matrix shape
    (`elmokit.training.processor`).
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


class Updates:
    """Model, optimizer, LSTM state and position in the text; `run` yields after every update.

    In the first ``softmax_first_share`` of the budget only the softmax is trained. All processes
    call every public method.
    """

    def __init__(
        self,
        start: Start,
        model: PretrainedBiLM,
        budget: Budget,
        checkpoint: Checkpoint | None,
        *,
        softmax_first_share: float,
    ) -> None:
        config, processes = start.config, start.processes
        self.config, self.text, self.processes, self.budget = config, start.text, processes, budget
        self.softmax_first_share = softmax_first_share
        self.model = model.to(processes.device)
        decay = config.train.ema_decay
        self.average = None if decay is None else WeightAverage(model, decay)
        # rank k has the k-th part of the rows: checkpoints join the parts in this order
        num_rows = config.train.batch_size
        num_own = num_rows // processes.size
        self.rows = slice(processes.rank * num_own, (processes.rank + 1) * num_own)
        assert model.softmax is not None
        self.loss = BiLMLoss(
            model, model.softmax, dropout=model.config.dropout, seed=config.train.seed,
            num_rows=num_rows, first_row=self.rows.start,
        )  # fmt: skip
        self.optimizer = config.optimizer.build(self.loss)
        self.progress = Progress()
        self.stream_state: dict[str, Any] | None = None
        self.state = self._own(BiLMState.zeros(model.config.lstm, num_rows))
        if checkpoint is not None:
            self._restore(checkpoint)
        self._stream()  # raises if the corpus is too small

    def _own(self, state: BiLMState) -> BiLMState:
        """Return this process's rows of the state of all processes, on its device."""
        own, device = state.rows(self.rows), self.processes.device
        return BiLMState(own.hidden.contiguous().to(device), own.cell.contiguous().to(device))

    def _restore(self, checkpoint: Checkpoint) -> None:
        with restoring(checkpoint):
            self.model.load_state_dict(checkpoint.model)
            restore_optimizer(self.optimizer, checkpoint.optimizer)
            if self.average is not None:
                if checkpoint.average:
                    self.average.load_state_dict(checkpoint.average)
                else:
                    self.average.restart(self.model)
            progress = checkpoint.metadata["progress"]
            self.progress = from_dict(Progress, progress, source=str(checkpoint.path))
            self.stream_state = checkpoint.metadata["stream"]
            state = BiLMState(checkpoint.carry["hidden"], checkpoint.carry["cell"])
            if state.num_rows != self.config.train.batch_size:
                raise ValueError(f"carry.safetensors has {state.num_rows} rows")
            self.state = self._own(state)
        log.info("resuming at step %d from %s", self.progress.step, checkpoint.path)

    def save(self, checkpoints: Pieces, metadata: Mapping[str, Any]) -> None:
        """Write a checkpoint on rank 0, with what the caller adds to its metadata."""
        gather = self.processes.gather_rows
        carry = {"hidden": gather(self.state.hidden, dim=2), "cell": gather(self.state.cell, dim=2)}
        if self.processes.is_main:
            progress = dataclasses.asdict(self.progress)
            save_checkpoint(
                checkpoints, self.progress.step,
                model=self.model.state_dict(), optimizer=self.optimizer, carry=carry,
                average=None if self.average is None else self.average.state_dict(),
                metadata={"progress": progress, **metadata, "stream": self.stream_state},
            )  # fmt: skip
        self.processes.barrier()

    def run(self) -> Iterator[StepReport[BiLMState]]:
        """Make the remaining updates, and yield a report after each."""
        loss, device = self.processes.wrap(self.loss), self.processes.device
        is_half = self.config.train.precision == "bf16"
        started = time.monotonic() - self.progress.seconds  # the time between phases counts, too

        def objective(batch: WindowTensors, state: BiLMState, step: int) -> StepResult[BiLMState]:
            forward, backward, new_state = loss(batch, state, step)
            parts = {"forward_loss": forward.detach(), "backward_loss": backward.detach()}
            return StepResult((forward + backward) / 2, parts, batch.num_targets, new_state)

        with closing(self._batches()) as batches:
            for until in sorted({self.softmax_first_share, 1.0}):
                for name, parameter in self.model.named_parameters():
                    if not name.startswith("softmax."):
                        parameter.requires_grad_(until > self.softmax_first_share)
                for report in train(
                    objective, batches, self.optimizer, carry=self.state,
                    budget=self.budget, until=until, progress=self.progress, started=started,
                    schedule=self.config.schedule, config=self.config.optimizer,
                    world=self.processes,
                    autocast=partial(torch.autocast, device.type, torch.bfloat16, enabled=is_half),
                ):  # fmt: skip
                    self.progress, self.state = report.progress, report.carry
                    if self.average is not None:
                        self.average.update(self.model, report.progress.step)
                    yield report

    def _stream(self) -> WindowStream:
        """Return the windows that come next."""
        config = self.config.train
        return WindowStream(
            self.text.shards, self.text.vocab, self.model.char_vocab,
            batch_size=config.batch_size, num_steps=config.unroll_steps,
            seed=config.seed, shuffle=config.shuffle, restart_share=config.zero_state_share,
            rank=self.processes.rank, world_size=self.processes.size, state=self.stream_state,
        )  # fmt: skip

    def _batches(self) -> Generator[WindowTensors]:
        """Yield batches on the device, read ahead; keep the stream's position after each."""
        # the stream is ahead of the updates: each batch brings the position behind it
        word_input, device = self.model.config.char_cnn is None, self.processes.device
        prepared = (
            (WindowTensors.from_batch(batch, word_input=word_input, device=device), state)
            for batch, state in self._stream()
        )
        with closing(read_ahead(prepared, limit=BATCHES_AHEAD)) as ready:
            for batch, state in ready:
                self.stream_state = state
                yield batch
