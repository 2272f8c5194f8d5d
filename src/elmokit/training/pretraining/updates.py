"""The updates of a run: what they read and change, how that is saved and restored."""

import dataclasses
import logging
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from functools import partial
from typing import Any

import torch

from elmokit.bilm.bilm import BiLMState
from elmokit.config import from_dict
from elmokit.corpus.read_ahead import read_ahead
from elmokit.corpus.stream import WindowStream
from elmokit.jobs.job import Pieces
from elmokit.training.checkpoints import Checkpoint, restore_optimizer, restoring, save_checkpoint
from elmokit.training.loop import StepReport, StepResult, train
from elmokit.training.optimizers import WeightAverage
from elmokit.training.pretraining.loss import BiLMLoss, WindowTensors
from elmokit.training.pretraining.start import Start
from elmokit.training.schedules import Budget, Progress
from elmokit.weights.model_dir import PretrainedBiLM

log = logging.getLogger(__name__)

BATCHES_AHEAD = 2  # prepared in the background


class Updates:
    """Model, optimizer, LSTM state and position in the text; `run` yields after every update.

    In the first ``softmax_first_share`` of the budget only the softmax is trained, but never again
    once the whole model was, whatever the budget becomes. All processes call every public method.
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
        self.is_whole = softmax_first_share == 0  # the whole model is trained
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
            if checkpoint.metadata.get("is_whole"):
                self.softmax_first_share, self.is_whole = 0.0, True
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
                metadata={
                    "progress": progress, **metadata, "stream": self.stream_state,
                    "is_whole": self.is_whole,
                },
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
                self.is_whole = until > self.softmax_first_share
                for name, parameter in self.model.named_parameters():
                    if not name.startswith("softmax."):
                        parameter.requires_grad_(self.is_whole)
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
