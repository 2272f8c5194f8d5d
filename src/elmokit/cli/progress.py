"""Progress on stderr: a bar on a terminal, occasional lines elsewhere; rich estimates the time."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from elmokit.cli.output import duration, is_main_process

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import Task

PACE_SECONDS = 300.0
"""The time left follows from the pace of the last minutes."""

Show = Callable[[str, float, float | None, str], None]
"""Takes the stage, the work done, the total and a short status."""


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
        return
    from rich import progress as rich
    from rich.console import Console

    columns = (
        rich.TextColumn("{task.description}", markup=False), rich.BarColumn(),
        rich.TaskProgressColumn(), rich.TimeElapsedColumn(), rich.TimeRemainingColumn(),
        rich.TextColumn("{task.fields[status]}", markup=False),
    )  # fmt: skip
    is_terminal = sys.stderr.isatty()
    with rich.Progress(
        *columns, console=Console(stderr=True), redirect_stdout=False, disable=not is_terminal,
        speed_estimate_period=PACE_SECONDS, get_time=time.monotonic,
    ) as bar:  # fmt: skip
        write_line = None if is_terminal else _line_writer(log_every_seconds)
        yield Progress(description, total, _stages(bar, write_line))


def _stages(bar: "Bar", write_line: "Callable[[Task], None] | None") -> Show:
    """Return what keeps a task of the bar for each stage, with a clock and a pace of its own."""
    tasks: dict[str, Task] = {}

    def show(stage: str, completed: float, total: float | None, status: str) -> None:
        task = tasks.get(stage)
        if task is None or completed < task.completed:  # new, or begun again
            if task is not None:
                bar.remove_task(task.id)
            number = bar.add_task(stage, status=status, visible=False)
            task = tasks[stage] = next(task for task in bar.tasks if task.id == number)
            task.completed = completed  # of before: no part of the pace
        for other in tasks.values():
            other.visible = other is task
        bar.update(task.id, completed=completed, total=total, status=status)
        if write_line is not None:
            write_line(task)

    return show


def _line_writer(every_seconds: float) -> "Callable[[Task], None]":
    last = time.monotonic()

    def write(task: "Task") -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < every_seconds:
            return
        last = now
        share = f" {task.completed:,.0f}" if not task.total else f" {task.percentage:.0f}%"
        left = task.time_remaining
        rest = f", about {duration(left)} left" if left else ""
        line = f"{task.description}{share} {duration(task.elapsed or 0)}{rest} "
        sys.stderr.write(f"{line}{task.fields['status']}".rstrip() + "\n")

    return write
