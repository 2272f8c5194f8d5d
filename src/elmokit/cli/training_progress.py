"""Progress of training runs on stderr."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from elmokit.cli.progress import progress_bar
from elmokit.wording import counted

if TYPE_CHECKING:
    from elmokit.corpus.text_shards import Preparation
    from elmokit.tasks.runs.training import EpochReport, TaskStep
    from elmokit.training.pretraining.pretrain import RunOptions
    from elmokit.training.pretraining.run import TrainingEvent


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

    def __init__(self, description: str, update: Callable[..., None]) -> None:
        self._description, self._update = description, update
        self._validation = ""

    def on_preparation(self, event: "Preparation") -> None:
        """Show the text prepared so far."""
        status = f"{counted(event.sentences, 'sentence')}, {counted(event.words, 'word')}"
        self._update(event.words, total=event.total_words, status=status, description=event.stage)

    def on_validation(self, done: int, total: int) -> None:
        """Show the held-out sentences scored."""
        self._update(
            done, total=total, status=f"{total:,} held-out sentences", description="validating"
        )

    def on_event(self, event: "TrainingEvent") -> None:
        """Show a training step and the last validation."""
        if event.validation is not None:
            self._validation = f" · held-out perplexity {event.validation.mean:.1f}"
        step, loss = event.report.progress.step, event.report.loss
        status = f"step {step} · {event.tokens_per_second:,.0f} tokens/s · loss {loss:.3f}"
        self._update(
            event.report.share, total=1.0, status=status + self._validation,
            description=self._description,
        )  # fmt: skip


class TaskListeners:
    """Callbacks of a task's training: show updates, the scoring of dev, and the last scores."""

    def __init__(self, update: Callable[..., None]) -> None:
        self._update = update
        self._score = ""

    def on_step(self, step: "TaskStep") -> None:
        """Show an update, or the dev examples scored."""
        loss = "" if step.loss is None else f" · loss {step.loss:.4f}"
        self._update(
            step.done, total=step.total, description=step.stage,
            status=f"epoch {step.epoch}{loss}{self._score}",
        )  # fmt: skip

    def on_epoch(self, report: "EpochReport") -> None:
        """Keep the dev score of an epoch in sight."""
        best = " (best)" if report.is_best else ""
        self._score = f" · dev {report.dev.metric} {report.dev.value:.2f}{best}"
