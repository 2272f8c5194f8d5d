"""Progress on stderr: a bar on a terminal, occasional lines elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

from elmokit.cli.output import duration, is_main_process

FIRST_ESTIMATE = 0.01
"""Share of the work to finish before the remaining time is estimated."""
HALF_LIFE = 60.0
"""Seconds after which the pace of the work counts half in the estimate; a longer piece of work
halves it once."""

Show = Callable[[str, float, float | None, str], None]
"""Takes the stage, the work done, the total and a short status."""


@dataclass
class _Pace:
    """Work and time of a stage, of which older parts count less."""

    done: float
    began: float
    finished: bool = False
    counted: float = 0.0
    work: float = 0.0
    seconds: float = 0.0
    waiting: float = 0.0
    """Seconds since work was last done."""
    last_piece: float = 0.0
    """The work that was done then."""

    def add(self, done: float, seconds: float) -> None:
        self.waiting += seconds
        if done == self.done:
            return
        # a piece of work that takes longer, such as a run, makes older ones count half
        fade = 0.5 ** min(1.0, self.waiting / HALF_LIFE)
        self.last_piece = done - self.done
        self.counted += self.last_piece
        self.work = self.work * fade + self.last_piece
        self.seconds = self.seconds * fade + self.waiting
        self.done, self.waiting = done, 0.0

    def left(self, total: float) -> float:
        """Return the seconds that the rest needs; a piece under way never counts as done."""
        pace, rest = self.seconds / self.work, total - self.done
        return pace * rest - min(self.waiting, pace * min(self.last_piece, rest))


class StageTimes:
    """How long stages have taken, and what they still need by their own pace.

    ``stage`` begins at ``now``, others with their first report. The time left leaves out what comes
    before the first report of a stage (a start, the work before a resume) and between two stages (a
    validation within a training).
    """

    def __init__(self, stage: str, now: float) -> None:
        self._paces: dict[str, _Pace] = {}
        self._first: tuple[str, float] = (stage, now)
        self._last: tuple[str, float] | None = None

    def elapsed(self, stage: str, now: float) -> float:
        """Return the seconds since a stage that has been reported began."""
        return now - self._paces[stage].began

    def estimate(self, stage: str, done: float, total: float | None, now: float) -> float | None:
        """Record the work done at a time; return the seconds left, None if it is too early."""
        pace = self._paces.get(stage)
        returned = self._last is not None and self._last[0] != stage
        # a new stage, or another one of that name
        if pace is None or done < pace.done or (returned and pace.finished):
            is_first = self._last is None and stage == self._first[0]
            pace = self._paces[stage] = _Pace(done, self._first[1] if is_first else now)
        if self._last is not None and self._last[0] == stage:
            pace.add(done, now - self._last[1])
        pace.finished = total is not None and done >= total
        pace.done, self._last = done, (stage, now)
        if not total or done >= total or pace.counted < FIRST_ESTIMATE * total or not pace.work:
            return None
        return pace.left(total)


class Progress:
    """Reports the work done so far; a new description starts a new stage."""

    def __init__(self, description: str, total: float | None, show: Show) -> None:
        self._stage, self._total, self._show = description, total, show

    def __call__(
        self,
        completed: float,
        *,
        status: str = "",
        total: float | None = None,
        description: str | None = None,
    ) -> None:
        """Show the work done; `total` and `description` replace the previous ones."""
        if description not in (None, self._stage):
            self._stage, self._total = description, None
        self._total = self._total if total is None else total
        self._show(self._stage, completed, self._total, status)


@contextmanager
def progress_bar(
    description: str, *, total: float | None = None, log_every_seconds: float = 30.0
) -> Iterator[Progress]:
    """Show progress on stderr; `log_every_seconds` applies where that is not a terminal."""
    if not is_main_process():
        yield Progress(description, total, lambda *_: None)
    elif sys.stderr.isatty():
        with _rich_bar(description) as show:
            yield Progress(description, total, show)
    else:
        yield Progress(description, total, _line_writer(description, log_every_seconds))


@contextmanager
def _rich_bar(current: str) -> Iterator[Show]:
    from rich import progress as rich
    from rich.console import Console

    columns = (
        rich.TextColumn("{task.description}", markup=False), rich.BarColumn(),
        rich.TaskProgressColumn(), rich.TimeElapsedColumn(),
        rich.TextColumn("{task.fields[left]}", markup=False),
        rich.TextColumn("{task.fields[status]}", markup=False),
    )  # fmt: skip
    with rich.Progress(*columns, console=Console(stderr=True), redirect_stdout=False) as bar:
        task = bar.add_task(current, total=None, status="", left="")
        times = StageTimes(current, time.monotonic())

        def show(stage: str, completed: float, total: float | None, status: str) -> None:
            nonlocal current
            now = time.monotonic()
            seconds = times.estimate(stage, completed, total, now)
            if stage != current:
                current = stage
                bar.reset(task, description=stage)
                bar.tasks[0].start_time = bar.get_time() - times.elapsed(stage, now)
            left = "" if seconds is None else f"{timedelta(seconds=round(seconds))} left"
            bar.update(task, completed=completed, status=status, total=total, left=left)

        yield show


def _line_writer(first: str, every_seconds: float) -> Show:
    last = time.monotonic()
    times = StageTimes(first, last)

    def show(stage: str, completed: float, total: float | None, status: str) -> None:
        nonlocal last
        now = time.monotonic()
        seconds = times.estimate(stage, completed, total, now)
        if now - last < every_seconds:
            return
        last = now
        share = f" {completed / total:.0%}" if total else f" {completed:,.0f}"
        left = "" if seconds is None else f", about {duration(seconds)} left"
        sys.stderr.write(
            f"{stage}{share} {duration(times.elapsed(stage, now))}{left} {status}".rstrip() + "\n"
        )

    return show
