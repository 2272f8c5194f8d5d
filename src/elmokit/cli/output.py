"""Output of commands: results on stdout, log messages on stderr."""

import json
import logging
import os
import sys

from elmokit.files.json_files import jsonable


def emit_json(result: object) -> None:
    """Print `result` as one JSON object; NaN and infinity become null."""
    text = json.dumps(jsonable(result), ensure_ascii=not stdout_is_utf8(), allow_nan=False)
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def stdout_is_utf8() -> bool:
    """Return whether stdout takes every character as it is, not as an escape that is no JSON."""
    return (sys.stdout.encoding or "ascii").lower().replace("-", "") == "utf8"


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
    logger, name = logging.getLogger("elmokit"), "elmokit-stderr"
    if not any(handler.name == name for handler in logger.handlers):
        handler = _StderrHandler()
        handler.name = name
        logger.addHandler(handler)
    usual = logging.DEBUG if debug else logging.INFO
    logger.setLevel(usual if is_main_process() else logging.WARNING)
