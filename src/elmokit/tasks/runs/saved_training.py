"""A training in its run directory: taken and locked, resumable, stopped cleanly.

Directory, checkpoints and signals are those of all trainings (`elmokit.training`).
"""

import logging
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from elmokit.config import from_dict
from elmokit.errors import InputError, Stopped
from elmokit.files.atomic import no_room
from elmokit.files.locks import LOCK_NAME
from elmokit.tasks.runs.config import TaskRunConfig
from elmokit.tasks.runs.run_dir import CONFIG_FILE, epoch_row
from elmokit.tasks.runs.training import EpochReport, OnStep, TaskStep, TaskTraining
from elmokit.training.checkpoints import (
    Checkpoint,
    latest_checkpoint,
    load_checkpoint,
    restoring,
)
from elmokit.training.metrics_log import METRICS_FILE, RUN_FILE, RunLog
from elmokit.training.run_dir import (
    BEST,
    CHECKPOINTS,
    MARK,
    check_command,
    check_run,
    exclusive_lock,
    is_recorded,
    mark_run,
    record_run,
)
from elmokit.training.signals import StopRequest, held_signals
from elmokit.weights.locate import CONFIG_NAME

log = logging.getLogger(__name__)

CHECKPOINT_SECONDS = 120.0
"""Longest time between two checkpoints; there is one after each epoch, and before the first score,
too."""
FIXED_SETTINGS = (
    "task", "units", "columns", "hidden_dims", "dropout", "inputs", "train.batch_size",
    "train.seed", "train.label_share", "train.lowercase_share", "train.finetune_bilm",
)  # fmt: skip
"""Settings that a resumed training cannot change."""

OnEpoch = Callable[[EpochReport], None]


@contextmanager
def open_run_dir(
    run_dir: Path, config: TaskRunConfig, origin: Mapping[str, Any], *, resume: bool
) -> Iterator[Checkpoint | None]:
    """Take a new run directory, or one to resume; lock it and yield the last checkpoint, if any.

    A training that was stopped in its first epoch is started over if it is not resumed. A
    directory in which nothing was saved is removed when an error ends the training.

    Raises:
        FileExistsError, NotADirectoryError, ConfigError: as `check_run` and `exclusive_lock`; if
            the directory holds the run of a biLM, or a model without checkpoints.
        FormatError: if ``run.json`` or the checkpoint is damaged.
    """
    _check_can_be_taken(run_dir, config, origin, resume=resume)
    mark_run(run_dir)
    with exclusive_lock(run_dir) as lock:
        # again: another process may have trained here, and ended, since
        if _check_can_be_taken(run_dir, config, origin, resume=resume):
            log.info("starting over: the training in %s was stopped in its first epoch", run_dir)
            _clear(run_dir)
        record_run(run_dir, config, origin)
        path = latest_checkpoint(run_dir / CHECKPOINTS) if resume else None
        if resume and path is None:
            log.warning("no checkpoint in %s: starting from the beginning", run_dir)
        try:
            yield None if path is None else load_checkpoint(path)
        except BaseException:
            is_empty = latest_checkpoint(run_dir / CHECKPOINTS) is None
            if is_empty and not (run_dir / CONFIG_FILE).exists():
                _clear(run_dir)
                with suppress(OSError):
                    lock.unlink(missing_ok=True)
                    run_dir.rmdir()
            raise


def _check_can_be_taken(
    run_dir: Path, config: TaskRunConfig, origin: Mapping[str, Any], *, resume: bool
) -> bool:
    """Return whether to start over a training that was stopped in its first epoch."""
    _check_is_no_bilm_run(run_dir)
    has_model = (run_dir / CONFIG_FILE).exists()
    if has_model and latest_checkpoint(run_dir / CHECKPOINTS) is None:
        raise FileExistsError(
            f"{run_dir} holds a trained model and no checkpoint to resume from. Use the model "
            "(`elmokit evaluate`, `elmokit predict`), or train in another directory."
        )
    starts_over = not resume and is_recorded(run_dir) and not has_model
    if not starts_over:
        check_run(run_dir, config, origin, resume=resume, fixed=FIXED_SETTINGS)
    return starts_over


def _check_is_no_bilm_run(run_dir: Path) -> None:
    """Refuse a directory of pre-training or fine-tuning; its files have the names of a task's."""
    if is_recorded(run_dir):
        check_command(run_dir, "train")
        is_other = any((run_dir / name).exists() for name in (CONFIG_NAME, BEST))
    else:  # a marked directory has the text of a biLM's run, or nothing yet but what a kill left
        found = run_dir.iterdir() if run_dir.is_dir() else ()
        names = {path.name for path in found if not path.name.endswith(".partial")}
        is_other = MARK in names and not names <= {MARK, LOCK_NAME}
    if is_other:
        raise FileExistsError(
            f"{run_dir} holds a run of pre-training or fine-tuning, not one of a task: `train` "
            "neither continues nor replaces it. Choose another directory."
        )


def _clear(run_dir: Path) -> None:
    """Remove what a training without a finished epoch has written."""
    shutil.rmtree(run_dir / CHECKPOINTS, ignore_errors=True)
    for name in (METRICS_FILE, RUN_FILE, MARK):
        (run_dir / name).unlink(missing_ok=True)


@dataclass(kw_only=True)
class SavedTraining:
    """Runs a `TaskTraining`: writes the best model, the log and checkpoints.

    ``save_on_signals``: on Ctrl-C, SIGTERM and SIGHUP, finish the update and write a checkpoint.
    """

    training: TaskTraining
    run_dir: Path
    write_best: Callable[[EpochReport], None]
    checkpoint: Checkpoint | None = None
    """Of which ``training`` was made."""
    save_on_signals: bool = False
    on_step: OnStep = lambda step: None
    on_epoch: OnEpoch = lambda report: None
    best: EpochReport | None = field(default=None, init=False)
    """The best epoch whose model is written; of a resumed one, ``dev.counts`` are not known."""
    _saved_step: int = field(default=0, init=False)
    _saved_at: float = field(default=0.0, init=False)

    def run(self) -> EpochReport:
        """Train to the end; return the best epoch.

        Raises:
            Stopped: after a signal and its checkpoint.
            FloatingPointError: if the loss is not finite.
            FormatError: if the checkpoint is damaged.
            InputError: if there was no time for an update.
        """
        if self.checkpoint is not None:
            self._restore_best(self.checkpoint)
        self._saved_step, self._saved_at = self.training.progress.step, time.monotonic()
        hold = held_signals(second_stops_at_once=True) if self.save_on_signals else nullcontext()
        try:
            with hold as stop:
                self._run(stop)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) or no_room(error) is not None:
                for note in self._what_is_safe():
                    error.add_note(note)
            raise
        if self.best is None:
            raise InputError(
                f"--minutes: the {self.training.budget.seconds:.2g} seconds were over before the "
                "first update. Give more, such as --minutes 1."
            )
        return self.best

    def _restore_best(self, checkpoint: Checkpoint) -> None:
        with restoring(checkpoint):
            best = checkpoint.metadata["best"]
            if best is not None:
                self.best = from_dict(EpochReport, best, source=str(checkpoint.path))
            if (best is None) != (self.training.scored_step == 0):
                raise ValueError("`best` does not agree with `scored_step`")

    def _run(self, stop: StopRequest | None) -> None:
        run_log = RunLog(self.run_dir / METRICS_FILE, resume_step=self.training.scored_step)
        if self.best is not None:
            # on disk may be the model of an epoch after the checkpoint, which is now made again
            with self.training.early_stopping.best_model():
                self.write_best(self.best)

        def on_step(step: TaskStep) -> None:
            self.on_step(step)
            # the first one before any model is written, which could not be resumed without it
            is_due = (step.stage == "scoring dev" and self._saved_step == 0) or (
                time.monotonic() - self._saved_at >= CHECKPOINT_SECONDS
            )
            if is_due:
                self._save()
            self._stop_if_asked(stop, step.epoch)

        for report in self.training.run(on_step):
            if report.is_best:
                self.write_best(report)
                self.best = report
            run_log.write(epoch_row(report, self.training.progress.step))
            self._save()
            self.on_epoch(report)
            self._stop_if_asked(stop, report.epoch)

    def _save(self) -> None:
        best = None
        if self.best is not None:
            dev = self.best.dev
            score = {"metric": dev.metric, "value": dev.value, "details": dev.details}
            best = vars(self.best) | {"dev": score}
        self.training.save(self.run_dir / CHECKPOINTS, {"best": best})
        self._saved_step, self._saved_at = self.training.progress.step, time.monotonic()

    def _stop_if_asked(self, stop: StopRequest | None, epoch: int) -> None:
        if stop is None or stop.signal_number is None:
            return
        if self._saved_step < self.training.progress.step:
            self._save()
        name = signal.Signals(stop.signal_number).name
        raise Stopped(f"stopped by {name} in epoch {epoch}.", signal_number=stop.signal_number)

    def _what_is_safe(self) -> Iterator[str]:
        if self.best is not None:
            yield f"The model of epoch {self.best.epoch} is safe in {self.run_dir}."
        path = latest_checkpoint(self.run_dir / CHECKPOINTS)
        if path is not None:
            or_else = "" if self.best else " Without --resume, the same command starts over."
            yield (
                f"{path} is complete; continue from it with the same command and --resume.{or_else}"
            )
