"""What every command shares: JSON output, progress, logging, error messages.

Results go to stdout (one JSON object with `--json`), everything else to stderr.
"""

import dataclasses
import errno
import json
import logging
import math
import os
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from elmokit.errors import ElmokitError, Stopped
from elmokit.files.atomic import no_room

# --- results ----------------------------------------------------------------------------------


def emit_json(result: object) -> None:
    """Print `result` as one JSON object on stdout.

    Dataclasses become objects, paths strings, NumPy and torch scalars numbers; numbers that JSON
    does not have (NaN, infinity) become null.
    """
    encoding = (sys.stdout.encoding or "ascii").lower().replace("-", "")
    text = json.dumps(
        _plain(result), ensure_ascii=encoding != "utf8", allow_nan=False, sort_keys=False
    )
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "tolist"):  # NumPy and torch, arrays and scalars
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


# --- progress and logs ------------------------------------------------------------------------


def is_main_process() -> bool:
    """False on the processes of `torchrun` that are not the first: they stay silent."""
    return os.environ.get("RANK", "0") == "0"


@runtime_checkable
class Progress(Protocol):
    """What `progress_bar` yields: call it with the work done so far."""

    def __call__(
        self,
        completed: float,
        *,
        status: str = "",
        total: float | None = None,
        description: str | None = None,
    ) -> None:
        """Show `completed` of the total (which may change) and a short status text.

        Another `description` begins another stage; its total is not known until it is given.
        """


@contextmanager
def progress_bar(
    description: str, *, total: float | None = None, log_every_seconds: float = 30.0
) -> Iterator[Progress]:
    """Show progress on stderr: a bar on a terminal, a line now and then elsewhere.

    Args:
        description: What is being done, two or three words.
        total: The whole amount of work, where it is known.
        log_every_seconds: How often a line is written where stderr is not a terminal.
    """
    if not is_main_process():
        yield lambda completed, *, status="", total=None, description=None: None
    elif sys.stderr.isatty():
        with _rich_bar(description, total) as update:
            yield update
    else:
        yield _line_writer(description, total, log_every_seconds)


@contextmanager
def _rich_bar(description: str, total: float | None) -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[status]}", markup=False),
    )
    with Progress(*columns, console=Console(stderr=True), redirect_stdout=False) as progress:
        stage = description
        task = progress.add_task(stage, total=total, status="")

        def update(
            completed: float,
            *,
            status: str = "",
            total: float | None = None,
            description: str | None = None,
        ) -> None:
            nonlocal stage
            if description not in (None, stage):
                stage = description
                progress.reset(task, total=total, description=description, status=status)
            progress.update(task, completed=completed, status=status, total=total)

        yield update


FIRST_ESTIMATE = 0.01
"""Share seen done before the rest is estimated: what comes first is no measure of it."""


def _line_writer(description: str, total: float | None, every_seconds: float) -> Progress:
    started = last = time.monotonic()
    stage, whole = description, total
    first: tuple[float, float] | None = None  # a job that is resumed does not begin at nothing

    def update(
        completed: float,
        *,
        status: str = "",
        total: float | None = None,
        description: str | None = None,
    ) -> None:
        nonlocal started, last, stage, whole, first
        now = time.monotonic()
        if description not in (None, stage):
            started, stage, whole, first = now, description, None, None
        first = first or (now, completed)
        whole = whole if total is None else total
        if now - last < every_seconds:
            return
        last = now
        share = f" {completed / whole:.0%}" if whole else f" {completed:,.0f}"
        left = ""
        since, before = first
        if whole and FIRST_ESTIMATE * whole <= completed - before and completed < whole:
            seconds = (now - since) * (whole - completed) / (completed - before)
            left = f", about {math.ceil(seconds / 60)} min left"
        line = f"{stage}{share} {now - started:.0f} s{left} {status}"
        sys.stderr.write(line.rstrip() + "\n")

    return update


def use_threads(threads: int | None) -> None:
    """Compute with so many CPU threads; none: PyTorch's choice."""
    if threads is not None:
        import torch

        torch.set_num_threads(threads)


class _StderrHandler(logging.Handler):
    """Writes to whatever `sys.stderr` is at that moment, so that lines pass above a live bar."""

    def emit(self, record: logging.LogRecord) -> None:
        prefix = "" if record.levelno <= logging.INFO else f"{record.levelname.lower()}: "
        sys.stderr.write(f"elmokit: {prefix}{record.getMessage()}\n")


def configure_logging() -> None:
    """Send the library's log to stderr: information from the first process, warnings from all."""
    logger = logging.getLogger("elmokit")
    if not any(isinstance(handler, _StderrHandler) for handler in logger.handlers):
        logger.addHandler(_StderrHandler())
    logger.setLevel(logging.INFO if is_main_process() else logging.WARNING)


# --- errors -----------------------------------------------------------------------------------

_CURES: dict[type[OSError], str] = {
    FileNotFoundError: "Check the path; a relative one starts at the directory of the command.",
    FileExistsError: "Give another name, or move what is there away.",
    IsADirectoryError: "A file is needed: give the path of one.",
    NotADirectoryError: "A part of this path is a file where a directory is needed: give another.",
    PermissionError: "Change the permissions of the file or of its directory (ls -ld shows them), "
    "or give another path.",
}
"""System errors about a path, and how to mend them."""


def is_user_error(error: BaseException) -> bool:
    """True where the input is at fault (exit code 2), False for the rest (exit code 1).

    At fault are a path that the system refuses and whatever elmokit found wrong by itself. A plain
    ``ValueError`` or ``TypeError`` is neither: it is a bug.
    """
    if isinstance(error, tuple(_CURES)):
        return error.errno is None or error.filename is not None
    return isinstance(error, ElmokitError) and no_room(error) is None


@contextmanager
def say_what_is_safe(saved: Callable[[], str]) -> Iterator[None]:
    """Add what is already on disk to the message that Ctrl-C, or a full disk, ends with."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) or no_room(error) is not None:
            error.add_note(saved())
        raise


def print_error(error: BaseException, *, debug: bool) -> None:
    """Write the message of `error` and its notes to stderr; the traceback too with `debug`."""
    if debug:
        sys.stderr.write("".join(traceback.format_exception(error)))
    lines = [f"elmokit: {describe_error(error)}", *getattr(error, "__notes__", [])]
    if not debug and not is_user_error(error) and not isinstance(error, KeyboardInterrupt):
        lines.append("(--debug shows the traceback)")
    sys.stderr.write("\n".join(lines) + "\n")


def describe_error(error: BaseException) -> str:
    """One message for one error: what is wrong, in words, without Python's own decoration."""
    text = str(error)
    has_notes = bool(getattr(error, "__notes__", None))
    if isinstance(error, Stopped):
        return text
    if isinstance(error, KeyboardInterrupt):
        if has_notes:
            return "interrupted."
        return "interrupted. Files appear whole or not at all: nothing is left half written."
    if (number := no_room(error)) is not None:
        return _describe_no_room(number, getattr(error, "filename", None), has_notes=has_notes)
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        cure = next((cure for kind, cure in _CURES.items() if isinstance(error, kind)), None)
        message = f"error: {error.strerror}: {error.filename}"
        return message if cure is None else f"{message}\n{cure}"
    if is_user_error(error) and text:
        return f"error: {text}"
    return f"error: {type(error).__name__}: {text}" if text else f"error: {type(error).__name__}"


def _describe_no_room(number: int, path: str | None, *, has_notes: bool) -> str:
    """Say what could not be written for want of room, and how to make some.

    Args:
        number: The system's.
        path: What was being written; none: standard output, or a temporary file.
        has_notes: Whether notes say how to go on.
    """
    where = path or f"standard output, or a temporary file in {tempfile.gettempdir()}"
    if number == errno.EFBIG:
        message = (
            f"error: {where} would be larger than a file may be here. "
            "Raise the limit (`ulimit -f` shows it), or write to a file system that takes larger "
            "files"
        )
    elif number == errno.EDQUOT:
        message = f"error: your share of the disk is used up: could not write {where}. Free space"
    else:
        message = f"error: the disk is full: could not write {where}{_free_space(path)}. Free space"
    if not has_notes:
        message += ", then run the command again"
    if path is None:
        return f"{message}."
    return f"{message}.\nNothing is left half written; what stood there before is unchanged."


def _free_space(path: str | None) -> str:
    """Return how much room there is where a file was to be, as the end of a sentence."""
    folder = None if path is None else next((p for p in Path(path).parents if p.is_dir()), None)
    if folder is None:
        return ""
    return f", which needs more than the {shutil.disk_usage(folder).free / 1e6:,.1f} MB free there"
