"""One training run of a biLM over prepared text: what pre-training and fine-tuning share.

Every process makes one `TrainingRun` and calls `TrainingRun.run`; rank 0 writes the run directory
(see `run_dir`).
"""

import dataclasses
import logging
import signal
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from elmokit.bilm.bilm import BiLMState
from elmokit.corpus.preparation import PreparedText
from elmokit.corpus.read_ahead import read_ahead
from elmokit.corpus.stream import WindowStream, with_more_rows
from elmokit.errors import Stopped
from elmokit.metrics.perplexity import PerplexityReport
from elmokit.training.averaging import WeightAverage
from elmokit.training.checkpoints import (
    Checkpoint,
    latest_checkpoint,
    load_checkpoint,
    restore_optimizer,
    save_checkpoint,
)
from elmokit.training.distributed import World
from elmokit.training.loop import StepReport, StepResult, agreed_share, train
from elmokit.training.memory import kept_memory
from elmokit.training.metrics_log import RunLog
from elmokit.training.precision import autocast, quick_matmul
from elmokit.training.pretraining.objective import BiLMLoss, WindowTensors
from elmokit.training.pretraining.run_config import RunConfig
from elmokit.training.pretraining.run_dir import CHECKPOINTS, METRICS_FILE
from elmokit.training.pretraining.validation import Validation
from elmokit.training.schedules import Limits, Progress
from elmokit.training.signals import StopRequest, held_signals
from elmokit.weights.model_dir import PretrainedBiLM

log = logging.getLogger(__name__)

BATCHES_AHEAD = 2
"""Batches that are ready before they are needed."""
FIRST_CHECKPOINT_SECONDS = 15.0
"""When a run that has no checkpoint yet writes one, unless a validation comes before."""


@dataclass(frozen=True)
class TrainingEvent:
    """What a run tells its caller: after every update, and after every validation."""

    report: StepReport[BiLMState]
    tokens_per_second: float
    validation: PerplexityReport | None = None


@dataclass(frozen=True)
class TrainingResult:
    """How a run ended."""

    model_dir: Path
    progress: Progress
    num_epochs: float
    """Passes made over the corpus."""
    perplexity: PerplexityReport | None
    """Of the best model on all held-out sentences, by full softmax; none if there are none."""
    stopped_early: bool


class TrainingRun:
    """One run over prepared text: what `pretrain` and `finetune` share.

    Args:
        config: Of the run.
        text: Shards, vocabulary, held-out sentences.
        model: With vocabulary and softmax; trained in place.
        run_dir: Where everything is written.
        processes: That train together.
        limits: How long.
        resume: Go on from the last checkpoint, if there is one.
        softmax_first_share: Share of the budget in which only the softmax is trained.
    """

    def __init__(
        self,
        config: RunConfig,
        text: PreparedText,
        model: PretrainedBiLM,
        run_dir: Path,
        processes: World,
        limits: Limits,
        *,
        resume: bool,
        softmax_first_share: float = 0.0,
    ) -> None:
        self.softmax_first_share = softmax_first_share
        self.config, self.text, self.run_dir, self.processes = config, text, run_dir, processes
        train_config = config.train
        train_config.rows_per_process(processes.size)
        self.model = model.to(processes.device)
        self.average = (
            None
            if train_config.ema_decay is None
            else WeightAverage(self.model, train_config.ema_decay)
        )
        targets_per_step = train_config.batch_size * train_config.unroll_steps
        self.budget = limits.budget(
            targets_per_epoch=text.shards.num_targets,
            targets_per_step=targets_per_step,
            default_epochs=train_config.num_epochs,
            steps_grow=bool(train_config.batch_growth),
        )
        self.validation = Validation(
            config.validation,
            text,
            self.model if self.average is None else self.average.model,
            run_dir,
            processes,
            seed=train_config.seed,
        )
        self.progress = Progress()
        checkpoint_path = latest_checkpoint(run_dir / CHECKPOINTS) if resume else None
        if resume and checkpoint_path is None and processes.is_main:
            log.warning("no checkpoint in %s: beginning anew", run_dir)
        self._has_checkpoint = checkpoint_path is not None
        self._build(checkpoint_path)

    def _build(self, checkpoint_path: Path | None) -> None:
        """Build loss, optimizer and stream, from a checkpoint if there is one."""
        config = self.config
        assert self.model.softmax is not None
        self.loss = BiLMLoss(
            self.model,
            self.model.softmax,
            dropout=self.model.config.dropout,
            seed=config.train.seed,
            num_rows=0,
        )
        checkpoint = None if checkpoint_path is None else load_checkpoint(checkpoint_path)
        if checkpoint is not None:
            self.model.load_state_dict(checkpoint.model)
        self.optimizer = config.optimizer.build(self.loss)
        self.stream_state: dict[str, Any] | None = None
        lstm, device = self.model.config.lstm, self.processes.device
        self._set_rows(BiLMState.zeros(lstm, config.train.batch_size, device=device))
        if checkpoint is not None:
            self._restore(checkpoint)
        self._saved_step = self.progress.step
        self._stream(self._rows_at(1.0))  # refuses a corpus that is too small for it

    def _restore(self, checkpoint: Checkpoint) -> None:
        restore_optimizer(self.optimizer, checkpoint.optimizer)
        if self.average is not None:
            if checkpoint.average:
                self.average.load_state_dict(checkpoint.average)
            else:
                self.average.restart(self.model)
        metadata = checkpoint.metadata
        self.progress = Progress(**metadata["progress"])
        self.validation.restore(metadata, self.budget.share(self.progress))
        self.stream_state = metadata["stream"]
        device = self.processes.device
        hidden, cell = (checkpoint.carry[name].to(device) for name in ("hidden", "cell"))
        self._set_rows(BiLMState(hidden, cell))
        log.info("resuming at step %d from %s", self.progress.step, checkpoint.path)

    def _set_rows(self, state: BiLMState) -> None:
        """Go on with the rows of ``state``, which holds those of all processes."""
        num_own = state.num_rows // self.processes.size
        first = self.processes.rank * num_own
        own = state.rows(slice(first, first + num_own))
        self.state = BiLMState(own.hidden.contiguous(), own.cell.contiguous())
        self.loss.num_rows, self.loss.first_row = state.num_rows, first

    def _gathered_state(self) -> BiLMState:
        """Return the LSTM memory of the rows of all processes."""
        gather = self.processes.gather_rows
        return BiLMState(gather(self.state.hidden, dim=2), gather(self.state.cell, dim=2))

    def _stream(self, num_rows: int) -> WindowStream:
        """Return the windows that come next, of ``num_rows`` rows or of as many as there are."""
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

    def run(
        self,
        on_event: Callable[[TrainingEvent], None] | None = None,
        *,
        save_on_signals: bool = False,
    ) -> TrainingResult:
        """Train to the end of budget or patience; the run directory then holds the best model.

        Args:
            on_event: Called on rank 0 after every update.
            save_on_signals: Finish the update and write a checkpoint at Ctrl-C and SIGTERM.

        Raises:
            Stopped: after such a checkpoint.
        """
        is_main, config = self.processes.is_main, self.config.train
        log_path = self.run_dir / METRICS_FILE
        run_log = RunLog(log_path, resume_step=self.progress.step) if is_main else None
        last_log, last_save = self.progress, time.monotonic()
        stopped_early = self.validation.is_out_of_patience  # so it was when it was resumed
        self.model.train()
        with (
            quick_matmul(config.quick_matmul and self.processes.device.type == "cpu"),
            kept_memory(),
            self._signals(held=save_on_signals) as stop,
        ):
            for report in () if stopped_early else self._updates():
                self.progress, self.state = report.progress, report.carry
                if self.average is not None:
                    self.average.update(self.model, report.progress.step)
                speed = _speed(last_log, report.progress)
                if report.progress.step % config.log_steps == 0:
                    last_log = report.progress
                    if run_log is not None:
                        run_log.write(_row(report, speed))
                validation = None
                if self.validation.is_due(report.share):
                    validation = self._validate(report.share, run_log)
                    stopped_early = self.validation.is_out_of_patience
                if on_event is not None and is_main:
                    on_event(TrainingEvent(report, speed, validation))
                if stopped_early:
                    break
                if self._save_is_due(time.monotonic() - last_save, validation is not None):
                    self.save()
                    last_save = time.monotonic()
                self._stop_if_asked(stop)
            is_behind = self.validation.is_behind(self.progress)
            if is_behind:  # the budget was changed when the run was resumed
                self._validate(1.0, run_log)
            if is_behind or self._saved_step < self.progress.step:
                self.save()
            self._stop_if_asked(stop)
        perplexity = self.validation.finish(self.progress)
        epochs = self.progress.tokens / self.text.shards.num_targets
        return TrainingResult(self.run_dir, self.progress, epochs, perplexity, stopped_early)

    def _validate(self, share: float, run_log: RunLog | None) -> PerplexityReport | None:
        report = self.validation.validate(self.progress, share)
        if run_log is not None and report is not None:
            run_log.write({"step": self.progress.step, **_validation_row(report)})
        return report

    def _updates(self) -> Iterator[StepReport[BiLMState]]:
        """Update until the budget is spent, from where the run stands."""
        loss = self.processes.wrap(self.loss)

        def objective(batch: WindowTensors, state: BiLMState, step: int) -> StepResult[BiLMState]:
            forward, backward, new_state = loss(batch, state, step)
            parts = {"forward_loss": forward.detach(), "backward_loss": backward.detach()}
            return StepResult((forward + backward) / 2, parts, batch.num_targets, new_state)

        for until in self._phases():
            with closing(self._batches()) as batches:
                yield from train(
                    objective,
                    batches,
                    self.optimizer,
                    carry=self.state,
                    budget=self.budget,
                    schedule=self.config.schedule,
                    config=self.config.optimizer,
                    until=until,
                    progress=self.progress,
                    world=self.processes,
                    autocast=autocast(self.config.train.precision, self.processes.device),
                    frozen=self._frozen if self.softmax_first_share > 0 else None,
                )

    def _phases(self) -> Iterator[float]:
        """Set rows and softmax for each part of the run that is left, and yield its end."""
        config = self.config.train
        assert self.model.softmax_config is not None
        exact_from = 1 - self.model.softmax_config.full_share
        ends = sorted({*(share for share, _ in config.batch_growth), exact_from, 1.0})
        while (share := agreed_share(self.budget, self.progress, self.processes)) < 1:
            self.loss.exact = share >= exact_from
            num_rows = self._rows_at(share)
            if num_rows > self.loss.num_rows:
                self._set_rows(self._gathered_state().with_more_rows(num_rows))
            self.stream = self._stream(num_rows)
            yield next(end for end in ends if end > share)

    def _rows_at(self, share: float) -> int:
        """Return the rows of all processes where ``share`` of the budget is spent.

        They never become fewer, though a run that is resumed with a longer budget may be at a share
        again at which it had fewer.
        """
        return max(self.config.train.rows_at(share), self.loss.num_rows)

    def _save_is_due(self, seconds_since_save: float, was_validated: bool) -> bool:
        """Tell whether to write a checkpoint; the clock and the validations of rank 0 count."""
        config = self.config.train
        if config.checkpoint_steps is not None:
            return self.progress.step % config.checkpoint_steps == 0
        interval = config.checkpoint_seconds
        if self.budget.seconds is not None:
            interval = min(interval, self.budget.seconds / 10)
        if self._has_checkpoint:
            return self.processes.agree(seconds_since_save >= interval)
        first = min(interval, FIRST_CHECKPOINT_SECONDS)
        return self.processes.agree(was_validated or seconds_since_save >= first)

    def _signals(self, *, held: bool) -> AbstractContextManager[StopRequest | None]:
        if not held:
            return nullcontext()
        return held_signals(second_stops_at_once=self.processes.size == 1)

    def _stop_if_asked(self, stop: StopRequest | None) -> None:
        """End the run with a checkpoint of this moment, if a signal asks rank 0 for it."""
        if stop is None or not self.processes.agree(stop.is_made):
            return
        log.info("stopping after step %d, with a checkpoint", self.progress.step)
        if self._saved_step < self.progress.step:
            self.save()
        number = stop.signal_number or signal.SIGTERM
        raise Stopped(
            f"stopped by {signal.Signals(number).name} after step {self.progress.step}.",
            signal_number=number,
        )

    def save(self) -> None:
        """Write a checkpoint of this very moment."""
        state = self._gathered_state()
        if self.processes.is_main:
            save_checkpoint(
                self.run_dir / CHECKPOINTS,
                self.progress.step,
                model=self.model.state_dict(),
                optimizer=self.optimizer,
                carry={"hidden": state.hidden, "cell": state.cell},
                average=None if self.average is None else self.average.state_dict(),
                metadata={
                    "progress": dataclasses.asdict(self.progress),
                    **self.validation.metadata(),
                    "stream": self.stream_state,
                },
            )
        self._saved_step = self.progress.step
        self._has_checkpoint = True
        self.processes.barrier()

    def _batches(self) -> Generator[WindowTensors]:
        """Yield batches on the device; remember where the stream stands after each.

        The next ones are made in the background meanwhile.
        """
        word_input, device = self.model.config.char_cnn is None, self.processes.device
        prepared = (
            (WindowTensors.from_batch(batch, word_input=word_input, device=device), state)
            for batch, state in self.stream
        )
        with closing(read_ahead(prepared, limit=BATCHES_AHEAD)) as ready:
            for batch, state in ready:
                self.stream_state = state
                yield batch

    def _frozen(self, share: float) -> list[torch.nn.Parameter]:
        """Return the biLM's parameters while the softmax is trained alone."""
        if share >= self.softmax_first_share:
            return []
        return [
            parameter
            for name, parameter in self.model.named_parameters()
            if not name.startswith("softmax.")
        ]


def _speed(since: Progress, now: Progress) -> float:
    return (now.tokens - since.tokens) / max(1e-9, now.seconds - since.seconds)


def _row(report: StepReport[BiLMState], speed: float) -> dict[str, Any]:
    return {
        "step": report.progress.step,
        "tokens": report.progress.tokens,
        "loss": report.loss,
        **report.parts,
        "tokens_per_second": round(speed, 1),
        "learning_rate": report.learning_rate,
        "gradient_norm": report.gradient_norm,
        "seconds": round(report.progress.seconds, 3),
    }


def _validation_row(report: PerplexityReport) -> dict[str, Any]:
    return {f"valid_{name}": value for name, value in dataclasses.asdict(report).items()}
