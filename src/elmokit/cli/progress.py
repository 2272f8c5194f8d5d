"""Progress on stderr: a bar on a terminal, occasional lines elsewhere; rich estimates the time."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from elmokit.cli.output import duration, is_main_process

if TYPE_CHECKING:
    from rich.progress import Task

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
