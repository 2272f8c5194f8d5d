"""Output of commands: results on stdout, tables in files; messages and progress on stderr."""

import csv
import errno
import json
import logging
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from elmokit.errors import ElmokitError, InputError, Stopped, counted
from elmokit.files.atomic import atomic_file, check_target, no_room
from elmokit.files.json_files import jsonable

if TYPE_CHECKING:
    from rich.progress import Task

    from elmokit.corpus.text_shards import Preparation
    from elmokit.training.pretraining.run import RunOptions, TrainingEvent


class Result(NamedTuple):
    """What a command returns for printing: ``data`` with --json, else the rest."""

    data: object
    lines: Iterable[str]
    note: str = ""
    """Goes to stderr."""
    exit_code: int = 0


def emit_json(result: object) -> None:
    """Print `result` as one JSON object; NaN and infinity become null."""
    text = json.dumps(jsonable(result), ensure_ascii=False, allow_nan=False)
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def check_output(
    output: Path | None, *, inputs: Iterable[Any] = (), overwrite: bool, option: str = "-o"
) -> None:
    """Check before any work that an optional file may be written."""
    if output is not None:
        check_target(output, inputs=inputs, overwrite=overwrite)
    elif overwrite:
        raise InputError(f"--overwrite is for {option}: nothing is written without it.")


def write_table(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write rows separated by tabs, quoted as in CSV."""
    with (
        atomic_file(path) as temp_path,
        temp_path.open("w", encoding="utf-8", newline="") as file,
    ):
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def duration(seconds: float) -> str:
    """Return a time as hours, minutes and seconds: ``1:30:00``."""
    return str(timedelta(seconds=round(seconds)))


def is_main_process() -> bool:
    """Return whether this is the only process or rank 0 under `torchrun`."""
    return os.environ.get("RANK", "0") == "0"


class _StderrHandler(logging.Handler):
    """Writes to the current `sys.stderr`, so lines appear above a live progress bar."""

    def emit(self, record: logging.LogRecord) -> None:
        prefix = "" if record.levelno <= logging.INFO else f"{record.levelname.lower()}: "
        sys.stderr.write(f"elmokit: {prefix}{record.getMessage()}\n")


def configure_logging(*, debug: bool = False) -> None:
    """Log to stderr: INFO (or DEBUG) and above on rank 0, WARNING and above on other ranks."""
    logger = logging.getLogger("elmokit")
    if not any(isinstance(handler, _StderrHandler) for handler in logger.handlers):
        logger.addHandler(_StderrHandler())
    usual = logging.DEBUG if debug else logging.INFO
    logger.setLevel(usual if is_main_process() else logging.WARNING)


_PATH_ERRORS = (
    FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError,
)  # fmt: skip
_PATH_NUMBERS = (errno.EROFS, errno.ENAMETOOLONG, errno.ELOOP)
"""Other refusals of a path by the system."""


def is_user_error(error: BaseException) -> bool:
    """Return whether the input is at fault: a path the system refuses, or an elmokit error."""
    if isinstance(error, _PATH_ERRORS):
        return error.errno is None or error.filename is not None
    if isinstance(error, OSError) and error.errno in _PATH_NUMBERS:
        return error.filename is not None
    return isinstance(error, ElmokitError) and no_room(error) is None


def print_error(error: BaseException, *, debug: bool = False) -> None:
    """Write the message and notes of `error` to stderr; with `debug`, also the traceback."""
    if debug:
        sys.stderr.write("".join(traceback.format_exception(error)))
    lines = [f"elmokit: {_message(error)}", *getattr(error, "__notes__", [])]
    if not debug and not is_user_error(error) and not isinstance(error, KeyboardInterrupt):
        lines.append("(--debug shows the traceback)")
    sys.stderr.write("\n".join(lines) + "\n")


def _message(error: BaseException) -> str:
    """Return what is wrong, without Python's own formatting."""
    text = str(error)
    if isinstance(error, Stopped):
        return text
    if isinstance(error, KeyboardInterrupt):
        return "interrupted. No file is half-written."
    if isinstance(error, MemoryError) or "can't allocate memory" in text:
        return "error: out of memory. Give a smaller batch or model; `ulimit -v` shows a limit."
    path = getattr(error, "filename", None)
    if (number := no_room(error)) is not None:
        where = path or f"standard output, or a temporary file in {tempfile.gettempdir()}"
        return f"error: {os.strerror(number)}: could not write {where}. Free space there."
    if isinstance(error, OSError) and error.strerror and path is not None:
        return f"error: {error.strerror}: {path}"
    if is_user_error(error) and text:
        return f"error: {text}"
    return f"error: {type(error).__name__}" + (f": {text}" if text else "")


BROKEN_PIPE = 141
"""Exit code after ``elmokit … | head``: 128 + SIGPIPE, as the shell reports it of others."""


def open_standard_streams() -> None:
    """Make all three streams usable, in UTF-8; refuse to start without standard output."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            # taken: otherwise the next file that is opened would get the number of standard error,
            # and libraries would write their messages into it
            os.open(os.devnull, os.O_RDWR)
    streams = cast(Any, sys)  # a closed one is None
    streams.stdin = sys.stdin or _nowhere("r")
    streams.stderr = _Messages(sys.stderr or _nowhere("w"))
    if sys.stdout is None:
        streams.stdout = _nowhere("w")
        sys.stderr.write(
            "elmokit: error: standard output is closed, so results would be lost. Give a file or a "
            "pipe, or /dev/null to drop them.\n"
        )
        raise SystemExit(2)
    for stream in (streams.stdout, streams.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def _nowhere(mode: str) -> Any:
    return open(os.devnull, mode, encoding="utf-8")


class _Messages:
    """Standard error that drops what the system refuses, as after the terminal was closed."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def drop_results() -> None:
    """Send what is buffered nowhere, or the interpreter would try, and complain, once more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def flush_results() -> None:
    """Write what is buffered for standard output; exit with a code if that fails."""
    try:
        sys.stdout.flush()
    except OSError as error:
        drop_results()
        raise SystemExit(BROKEN_PIPE if isinstance(error, BrokenPipeError) else 1) from None


PACE_SECONDS = 300.0
"""The time left follows from the pace of the last minutes."""

LOG_SECONDS = 30.0
"""Between lines where stderr is not a terminal."""
Progress = Callable[..., None]
"""Takes the work done and, by name, its `total`, a short `status` and the stage (`description`)."""


@contextmanager
def progress_bar(description: str, *, total: float | None = None) -> Iterator[Progress]:
    """Show progress on stderr, one stage at a time; yield what updates it."""
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
    stage, last_line = "", time.monotonic()

    def update(
        completed: float, *, status: str = "", total: float | None = total,
        description: str | None = None,
    ) -> None:  # fmt: skip
        nonlocal stage, last_line
        name = description or stage or task.description
        if name != stage or completed < task.completed:  # new, or begun again
            stage = name
            bar.reset(task.id, description=name)
            # what was done before is no part of the pace
            task.completed, task.total = completed, total
        bar.update(task.id, completed=completed, total=total, status=status)
        now = time.monotonic()
        if not is_terminal and now - last_line >= LOG_SECONDS:
            last_line = now
            sys.stderr.write(_line(task))

    is_terminal = sys.stderr.isatty()
    with rich.Progress(
        *columns, console=Console(stderr=True), redirect_stdout=False, disable=not is_terminal,
        speed_estimate_period=PACE_SECONDS, get_time=time.monotonic,
    ) as bar:  # fmt: skip
        bar.add_task(description, total=total, status="")
        (task,) = bar.tasks
        yield update


def _line(task: "Task") -> str:
    share = f" {task.completed:,.0f}" if not task.total else f" {task.percentage:.0f}%"
    left = f", about {duration(task.time_remaining)} left" if task.time_remaining else ""
    line = f"{task.description}{share} {duration(task.elapsed or 0)}{left} {task.fields['status']}"
    return f"{line.rstrip()}\n"


@contextmanager
def watch_training(description: str, options: "RunOptions") -> "Iterator[RunOptions]":
    """Yield the options with a progress bar: words prepared, then tokens/s, loss and perplexity."""
    held_out = ""

    def on_preparation(event: "Preparation") -> None:
        status = f"{counted(event.sentences, 'sentence')}, {counted(event.words, 'word')}"
        update(event.words, total=None, status=status, description="tokenizing")

    def on_validation(done: int, total: int) -> None:
        status = f"{total:,} held-out sentences"
        update(done, total=total, status=status, description="validating")

    def on_event(event: "TrainingEvent") -> None:
        nonlocal held_out
        report = event.report
        if event.validation is not None:
            held_out = f" · held-out perplexity {event.validation.mean:.1f}"
        pace = f"{event.tokens_per_second:,.0f} tokens/s"
        status = f"step {report.progress.step} · {pace} · loss {report.loss:.3f}{held_out}"
        update(report.share, total=1.0, status=status, description=description)

    with progress_bar(description) as update:
        yield replace(
            options, save_on_signals=True, on_preparation=on_preparation, on_event=on_event,
            on_validation=on_validation,
        )  # fmt: skip
