"""Progress on stderr: a bar on a terminal, occasional lines elsewhere."""

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from elmokit.cli.output import is_main_process

FIRST_ESTIMATE = 0.01
"""Share of the work to finish before the remaining time is estimated."""

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
        rich.TaskProgressColumn(), rich.TimeElapsedColumn(), rich.TimeRemainingColumn(),
        rich.TextColumn("{task.fields[status]}", markup=False),
    )  # fmt: skip
    with rich.Progress(*columns, console=Console(stderr=True), redirect_stdout=False) as bar:
        task = bar.add_task(current, total=None, status="")

        def show(stage: str, completed: float, total: float | None, status: str) -> None:
            nonlocal current
            if stage != current:
                current = stage
                bar.reset(task, description=stage)
            bar.update(task, completed=completed, status=status, total=total)

        yield show


def _line_writer(current: str, every_seconds: float) -> Show:
    started = last = time.monotonic()
    first: tuple[float, float] | None = None  # a resumed job does not start at 0

    def show(stage: str, completed: float, total: float | None, status: str) -> None:
        nonlocal current, started, last, first
        now = time.monotonic()
        if stage != current:
            current, started, first = stage, now, None
        first = first or (now, completed)
        if now - last < every_seconds:
            return
        last = now
        share = f" {completed / total:.0%}" if total else f" {completed:,.0f}"
        left = ""
        since, before = first
        if total and FIRST_ESTIMATE * total <= completed - before and completed < total:
            seconds = (now - since) * (total - completed) / (completed - before)
            left = f", about {math.ceil(seconds / 60)} min left"
        sys.stderr.write(f"{stage}{share} {now - started:.0f} s{left} {status}".rstrip() + "\n")

    return show
