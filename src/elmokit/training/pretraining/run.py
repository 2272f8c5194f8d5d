"""One training run of a biLM: updates, log, validations, checkpoints, early stopping.

Every process makes one `TrainingRun` and calls its `run`; rank 0 writes the run directory.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from elmokit.bilm.bilm import BiLMState
from elmokit.corpus.preparation import PreparedText
from elmokit.evaluation.perplexity import warn_of_unknown
from elmokit.jobs.job import checkpoints_of
from elmokit.jobs.metrics_log import MetricsLog
from elmokit.jobs.signals import StopRequest, stop_requests
from elmokit.metrics.perplexity import PerplexityReport
from elmokit.training.checkpoints import load_checkpoint, restoring
from elmokit.training.distributed import World
from elmokit.training.loop import StepReport
from elmokit.training.pretraining.run_config import RunConfig
from elmokit.training.pretraining.updates import Updates
from elmokit.training.pretraining.validation import OnValidation, Validation
from elmokit.training.schedules import Limits, Progress
from elmokit.training.speed import kept_memory, quick_matmul
from elmokit.weights.model_dir import PretrainedBiLM

log = logging.getLogger(__name__)

FIRST_CHECKPOINT_SECONDS = 15.0  # or at the first validation, if that is earlier


@dataclass(frozen=True)
class TrainingEvent:
    """One update, with its validation if there was one."""

    report: StepReport[BiLMState]
    tokens_per_second: float
    """Since the last logged update, without validations and checkpoints."""
    validation: PerplexityReport | None = None


@dataclass(frozen=True)
class TrainingResult:
    """How a run ended."""

    model_dir: Path
    progress: Progress
    num_epochs: float
    """Passes made over the corpus, counted in predicted words; those that
    ``train.zero_state_share`` skips are not counted."""
    perplexity: PerplexityReport | None
    """Of the best model on all held-out sentences, by full softmax; none if there are none."""
    stopped_early: bool


class TrainingRun:
    """One run over prepared text, for `pretrain` and `finetune`; trains ``model`` in place.

    Continues from the last checkpoint, if there is one. In the first ``softmax_first_share`` of
    the budget only the softmax is trained.
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
        softmax_first_share: float = 0.0,
        on_event: Callable[[TrainingEvent], None] | None = None,
        on_validation: OnValidation | None = None,
        save_on_signals: bool = False,
    ) -> None:
        self.config, self.text, self.run_dir, self.processes = config, text, run_dir, processes
        self.on_event, self.on_validation = on_event, on_validation
        self.save_on_signals = save_on_signals
        self.budget = limits.budget(
            targets_per_epoch=text.shards.num_targets,
            targets_per_step=config.train.batch_size * config.train.unroll_steps,
            default_epochs=config.train.num_epochs,
            steps_grow=bool(config.train.batch_growth),
        )
        self.checkpoints = checkpoints_of(run_dir)
        checkpoint = load_checkpoint(self.checkpoints)
        self.updates = Updates(
            config,
            text,
            model,
            processes,
            self.budget,
            checkpoint=checkpoint,
            softmax_first_share=softmax_first_share,
        )
        average, seed = self.updates.average, config.train.seed
        scored = self.updates.model if average is None else average.model
        self.validation = Validation(config.validation, text, scored, run_dir, processes, seed=seed)
        if checkpoint is not None:
            share = self.budget.share(self.updates.progress)
            with restoring(checkpoint):
                self.validation.restore(checkpoint.metadata, share)
        self._has_checkpoint = checkpoint is not None
        self._saved_step = self.updates.progress.step
        self._log: MetricsLog | None = None

    def run(self) -> TrainingResult:
        """Train until budget or patience ends; the run directory then holds the best model.

        Raises:
            Stopped: after a signal and its checkpoint.
        """
        is_main, updates = self.processes.is_main, self.updates
        stopped_early = self.validation.is_out_of_patience  # a resumed run may already be
        if is_main:
            self._log = MetricsLog(self.run_dir, resume_step=updates.progress.step)
            if not stopped_early and self.budget.share(updates.progress) < 1:
                self._log.begin()
        updates.model.train()
        with (
            quick_matmul(self.config.train.quick_matmul and self.processes.device.type == "cpu"),
            kept_memory(),
            stop_requests(
                self.save_on_signals, second_stops_at_once=self.processes.size == 1
            ) as stop,
        ):
            if not stopped_early:
                stopped_early = self._update(stop)
            is_behind = self.validation.is_behind(updates.progress)
            if is_behind:  # the budget was changed when the run was resumed
                self._validate(1.0)
            if is_behind or self._saved_step < updates.progress.step:
                self.save()
            self._stop_if_asked(stop)
        perplexity = self.validation.finish(updates.progress, self.on_validation)
        if perplexity is not None and is_main:
            warn_of_unknown(perplexity)
        epochs = updates.progress.tokens / self.text.shards.num_targets
        return TrainingResult(self.run_dir, updates.progress, epochs, perplexity, stopped_early)

    def _update(self, stop: StopRequest) -> bool:
        """Make all updates with what is due after each; tell whether patience ended them."""
        last_log, last_save = self.updates.progress, time.monotonic()
        pauses = 0.0  # seconds since `last_log` in which nothing was trained
        for report in self.updates.run():
            paused_at = time.monotonic()
            speed = _speed(last_log, report.progress, pauses)
            if report.progress.step % self.config.train.log_steps == 0:
                last_log, pauses = report.progress, 0.0
                if self._log is not None:
                    self._log.write(_row(report, speed))
            is_validated = self.validation.is_due(report.share)
            validation = self._validate(report.share) if is_validated else None
            if self.on_event is not None and self.processes.is_main:
                self.on_event(TrainingEvent(report, speed, validation))
            if is_validated and self.validation.is_out_of_patience:
                return True
            if self._save_is_due(time.monotonic() - last_save, validation is not None):
                self.save()
                last_save = time.monotonic()
            self._stop_if_asked(stop)
            pauses += time.monotonic() - paused_at
        return False

    def _validate(self, share: float) -> PerplexityReport | None:
        progress = self.updates.progress
        report = self.validation.validate(progress, share, self.on_validation)
        if self._log is not None and report is not None:
            figures = {f"valid_{name}": value for name, value in asdict(report).items()}
            self._log.write({"step": progress.step, "tokens": progress.tokens, **figures})
        return report

    def _save_is_due(self, seconds_since_save: float, was_validated: bool) -> bool:
        """Tell whether to write a checkpoint, by the clock and the validations of rank 0."""
        config = self.config.train
        if config.checkpoint_steps is not None:
            return self.updates.progress.step % config.checkpoint_steps == 0
        interval = config.checkpoint_seconds
        if self.budget.seconds is not None:
            interval = min(interval, self.budget.seconds / 10)
        if self._has_checkpoint:
            return self.processes.agree(seconds_since_save >= interval)
        first = min(interval, FIRST_CHECKPOINT_SECONDS)
        return self.processes.agree(was_validated or seconds_since_save >= first)

    def _stop_if_asked(self, stop: StopRequest) -> None:
        """Write a checkpoint and end the run if rank 0 got a signal."""
        if not self.save_on_signals or not self.processes.agree(stop.signal_number is not None):
            return
        step = self.updates.progress.step
        log.info("stopping after step %d, with a checkpoint", step)
        if self._saved_step < step:
            self.save()
        raise stop.stopped(f"after step {step}")

    def save(self) -> None:
        """Write a checkpoint of the current state."""
        self.updates.save(self.checkpoints, self.validation.metadata())
        self._saved_step = self.updates.progress.step
        self._has_checkpoint = True


def _speed(since: Progress, now: Progress, pauses: float) -> float:
    """Return targets per second of training, without validations and checkpoints."""
    return (now.tokens - since.tokens) / max(1e-9, now.seconds - since.seconds - pauses)


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
