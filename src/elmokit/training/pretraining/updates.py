"""The updates of a run: what they read, what they change, and how it is saved and restored."""

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
from elmokit.corpus.stream import WindowStream, with_more_rows
from elmokit.errors import ConfigError
from elmokit.jobs.job import Pieces
from elmokit.training.checkpoints import Checkpoint, restore_optimizer, restoring, save_checkpoint
from elmokit.training.loop import StepReport, StepResult, agreed_share, train
from elmokit.training.optimizers import WeightAverage
from elmokit.training.pretraining.objective import BiLMLoss, WindowTensors
from elmokit.training.pretraining.start import Start
from elmokit.training.schedules import Budget, Progress
from elmokit.weights.model_dir import PretrainedBiLM

log = logging.getLogger(__name__)

BATCHES_AHEAD = 2  # prepared in the background


class Updates:
    """Model, optimizer, LSTM state and position in the text; `run` yields after every update.

    All processes call every public method.
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
        decay, seed, dropout = config.train.ema_decay, config.train.seed, model.config.dropout
        self.average = None if decay is None else WeightAverage(model, decay)
        assert model.softmax is not None
        self.loss = BiLMLoss(model, model.softmax, dropout=dropout, seed=seed, num_rows=0)
        self.optimizer = config.optimizer.build(self.loss)
        self.progress = Progress()
        self.stream_state: dict[str, Any] | None = None
        num_rows, device = config.train.batch_size, processes.device
        self._set_rows(BiLMState.zeros(model.config.lstm, num_rows, device=device))
        if checkpoint is not None:
            self._restore(checkpoint)
        self._stream(self._rows_at(1.0))  # raises if the corpus is too small

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
            carry, device = checkpoint.carry, self.processes.device
            state = BiLMState(carry["hidden"].to(device), carry["cell"].to(device))
        self._set_rows(state)
        log.info("resuming at step %d from %s", self.progress.step, checkpoint.path)

    def save(self, checkpoints: Pieces, metadata: Mapping[str, Any]) -> None:
        state, average = self._gathered_state(), self.average
        if self.processes.is_main:
            progress = dataclasses.asdict(self.progress)
            save_checkpoint(
                checkpoints,
                self.progress.step,
                model=self.model.state_dict(),
                optimizer=self.optimizer,
                carry={"hidden": state.hidden, "cell": state.cell},
                average=None if average is None else average.state_dict(),
                metadata={"progress": progress, **metadata, "stream": self.stream_state},
            )
        self.processes.barrier()

    def run(self) -> Iterator[StepReport[BiLMState]]:
        loss, device = self.processes.wrap(self.loss), self.processes.device
        is_half = self.config.train.precision == "bf16"
        started = time.monotonic() - self.progress.seconds  # the time between phases counts, too

        def objective(batch: WindowTensors, state: BiLMState, step: int) -> StepResult[BiLMState]:
            forward, backward, new_state = loss(batch, state, step)
            parts = {"forward_loss": forward.detach(), "backward_loss": backward.detach()}
            return StepResult((forward + backward) / 2, parts, batch.num_targets, new_state)

        for until, num_rows in self._phases():
            with closing(self._batches(self._stream(num_rows))) as batches:
                for report in train(
                    objective,
                    batches,
                    self.optimizer,
                    carry=self.state,
                    budget=self.budget,
                    schedule=self.config.schedule,
                    config=self.config.optimizer,
                    until=until,
                    progress=self.progress,
                    started=started,
                    world=self.processes,
                    autocast=partial(torch.autocast, device.type, torch.bfloat16, enabled=is_half),
                ):
                    self.progress, self.state = report.progress, report.carry
                    if self.average is not None:
                        self.average.update(self.model, report.progress.step)
                    yield report

    def _phases(self) -> Iterator[tuple[float, int]]:
        """Set up each remaining phase of the run; yield its end and its number of rows."""
        assert self.model.softmax_config is not None
        exact_from = 1 - self.model.softmax_config.full_share
        growth = (share for share, _ in self.config.train.batch_growth)
        ends = sorted({*growth, exact_from, self.softmax_first_share, 1.0})
        while (share := agreed_share(self.budget, self.progress, self.processes)) < 1:
            self.loss.exact = share >= exact_from
            for name, parameter in self.model.named_parameters():
                if not name.startswith("softmax."):
                    parameter.requires_grad_(share >= self.softmax_first_share)
            num_rows = self._rows_at(share)
            if num_rows > self.loss.num_rows:
                self._set_rows(self._gathered_state().with_more_rows(num_rows))
            yield next(end for end in ends if end > share), num_rows

    def _rows_at(self, share: float) -> int:
        """Return the rows of all processes when ``share`` of the budget is spent.

        Rows never decrease, even if a longer budget moves a resumed run back to a smaller share.
        """
        return max(self.config.train.rows_at(share), self.loss.num_rows)

    def _set_rows(self, state: BiLMState) -> None:
        """Continue with this process's rows of ``state``, which holds those of all."""
        if state.num_rows % self.processes.size:
            raise ConfigError(
                f"{self.processes.size} processes cannot share {state.num_rows} rows (checkpoint)."
            )
        # rank k has the k-th part of the rows: checkpoints join the parts in this order
        num_own = state.num_rows // self.processes.size
        first = self.processes.rank * num_own
        own = state.rows(slice(first, first + num_own))
        self.state = BiLMState(own.hidden.contiguous(), own.cell.contiguous())
        self.loss.num_rows, self.loss.first_row = state.num_rows, first

    def _gathered_state(self) -> BiLMState:
        gather = self.processes.gather_rows
        return BiLMState(gather(self.state.hidden, dim=2), gather(self.state.cell, dim=2))

    def _stream(self, num_rows: int) -> WindowStream:
        """Return the windows that come next, with at least ``num_rows`` rows."""
        state, config = self.stream_state, self.config.train
        if state is not None and len(state["rows"]) < num_rows:
            state = with_more_rows(state, num_rows)
        return WindowStream(
            self.text.shards,
            self.text.vocab,
            self.model.char_vocab,
            batch_size=num_rows,
            num_steps=config.unroll_steps,
            seed=config.seed,
            shuffle=config.shuffle,
            rank=self.processes.rank,
            world_size=self.processes.size,
            restart_share=config.zero_state_share,
            state=state,
        )

    def _batches(self, stream: WindowStream) -> Generator[WindowTensors]:
        """Yield batches on the device, read ahead; keep the stream's position after each."""
        # the stream is ahead of the updates: each batch brings the position behind it
        word_input, device = self.model.config.char_cnn is None, self.processes.device
        prepared = (
            (WindowTensors.from_batch(batch, word_input=word_input, device=device), state)
            for batch, state in stream
        )
        with closing(read_ahead(prepared, limit=BATCHES_AHEAD)) as ready:
            for batch, state in ready:
                self.stream_state = state
                yield batch
