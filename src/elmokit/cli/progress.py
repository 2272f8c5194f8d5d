"""Progress on stderr: a bar on a terminal, occasional lines elsewhere; rich estimates the time."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from elmokit.cli.output import duration, is_main_process
from elmokit.wording import counted

if TYPE_CHECKING:
    from rich.progress import Task

    from elmokit.corpus.text_shards import Preparation
    from elmokit.tasks.runs.training import EpochReport, TaskStep
    from elmokit.training.pretraining.pretrain import RunOptions
    from elmokit.training.pretraining.run import TrainingEvent

PACE_SECONDS = 300.0
"""The time left follows from the pace of the last minutes."""

Progress = Callable[..., None]
"""Takes the work done and, by name, its `total`, a short `status` and the stage (`description`)."""


@contextmanager
def progress_bar(
    description: str, *, total: float | None = None, log_every_seconds: float = 30.0
) -> Iterator[Progress]:
    """Show progress on stderr, each stage with a clock of its own; yield what updates it.

    `log_every_seconds` applies where stderr is not a terminal.
    """
    if not is_main_process():
        yield lambda *_, **__: None
        return
    from rich import progress as rich
    from rich.console import Console

    columns = (
        rich.TextColumn("{task.description}", markup=False), rich.BarColumn(),
        rich.TaskProgressColumn(), rich.TimeElapsedColumn(), rich.TimeRemainingColumn(),
        rich.TextColumn("{task.fields[status]}", markup=False),
    )  # fmt: skip
    tasks: dict[str, Task] = {}
    stage, last_line = description, time.monotonic()

    def update(
        completed: float, *, status: str = "", total: float | None = total,
        description: str | None = None,
    ) -> None:  # fmt: skip
        nonlocal stage, last_line
        stage = description or stage
        task = tasks.get(stage)
        if task is None or completed < task.completed:  # new, or begun again
            if task is not None:
                bar.remove_task(task.id)
            bar.add_task(stage, total=None, status=status)
            task = tasks[stage] = bar.tasks[-1]
            task.completed = completed  # what was done before is no part of the pace
        for other in tasks.values():
            other.visible = other is task
        bar.update(task.id, completed=completed, total=total, status=status)
        now = time.monotonic()
        if not is_terminal and now - last_line >= log_every_seconds:
            last_line = now
            sys.stderr.write(_line(task))

    is_terminal = sys.stderr.isatty()
    with rich.Progress(
        *columns, console=Console(stderr=True), redirect_stdout=False, disable=not is_terminal,
        speed_estimate_period=PACE_SECONDS, get_time=time.monotonic,
    ) as bar:  # fmt: skip
        yield update


def _line(task: "Task") -> str:
    share = f" {task.completed:,.0f}" if not task.total else f" {task.percentage:.0f}%"
    left = f", about {duration(task.time_remaining)} left" if task.time_remaining else ""
    line = f"{task.description}{share} {duration(task.elapsed or 0)}{left} {task.fields['status']}"
    return f"{line.rstrip()}\n"


@contextmanager
def watch_training(description: str, options: "RunOptions") -> "Iterator[RunOptions]":
    """Yield the options with a progress bar attached."""
    with progress_bar(description) as update:
        shown = Listeners(description, update)
        yield replace(
            options, save_on_signals=True, on_preparation=shown.on_preparation,
            on_event=shown.on_event, on_validation=shown.on_validation,
        )  # fmt: skip


class Listeners:
    """Callbacks of a run: show words prepared, then tokens/s, loss and validation perplexity."""

    def __init__(self, description: str, update: Progress) -> None:
        self._description, self._update = description, update
        self._validation = ""

    def on_preparation(self, event: "Preparation") -> None:
        """Show the text prepared so far."""
        status = f"{counted(event.sentences, 'sentence')}, {counted(event.words, 'word')}"
        self._update(event.words, total=event.total_words, status=status, description=event.stage)

    def on_validation(self, done: int, total: int) -> None:
        """Show the held-out sentences scored."""
        status = f"{total:,} held-out sentences"
        self._update(done, total=total, status=status, description="validating")

    def on_event(self, event: "TrainingEvent") -> None:
        """Show a training step and the last validation."""
        report = event.report
        if event.validation is not None:
            self._validation = f" · held-out perplexity {event.validation.mean:.1f}"
        pace = f"{event.tokens_per_second:,.0f} tokens/s"
        status = f"step {report.progress.step} · {pace} · loss {report.loss:.3f}{self._validation}"
        self._update(report.share, total=1.0, status=status, description=self._description)


class TaskListeners:
    """Callbacks of a task's training: show updates, the scoring of dev, and the last scores."""

    def __init__(self, update: Progress) -> None:
        self._update = update
        self._score = ""

    def on_step(self, step: "TaskStep") -> None:
        """Show an update, or the dev examples scored."""
        loss = "" if step.loss is None else f" · loss {step.loss:.4f}"
        status = f"epoch {step.epoch}{loss}{self._score}"
        self._update(step.done, total=step.total, description=step.stage, status=status)

    def on_epoch(self, report: "EpochReport") -> None:
        """Keep the dev score of an epoch in sight."""
        best = " (best)" if report.is_best else ""
        self._score = f" · dev {report.dev.metric} {report.dev.value:.2f}{best}"
