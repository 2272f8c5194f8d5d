"""Output of commands: results on stdout, tables in files, log messages on stderr."""

import csv
import json
import logging
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from elmokit.errors import InputError
from elmokit.files.atomic import atomic_file, check_target
from elmokit.files.json_files import jsonable


def emit_json(result: object) -> None:
    """Print `result` as one JSON object; NaN and infinity become null."""
    text = json.dumps(jsonable(result), ensure_ascii=not stdout_is_utf8(), allow_nan=False)
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def stdout_is_utf8() -> bool:
    """Return whether stdout takes every character as it is, not as an escape that is no JSON."""
    return (sys.stdout.encoding or "ascii").lower().replace("-", "") == "utf8"


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
    """Return a time in the usual units: ``100 s``, ``12 min``, ``1 h 30 min``."""
    if round(seconds) < 120:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    parts = [f"{hours} h"] * bool(hours) + [f"{minutes} min"] * bool(minutes)
    return " ".join(parts)


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
