"""Output of commands: results on stdout, log messages on stderr."""

import dataclasses
import json
import logging
import math
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def emit_json(result: object) -> None:
    """Print `result` as one JSON object; NaN and infinity become null."""
    encoding = (sys.stdout.encoding or "ascii").lower().replace("-", "")
    text = json.dumps(_plain(result), ensure_ascii=encoding != "utf8", allow_nan=False)
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
