"""``metrics.jsonl``: one JSON object per line for every logged step and every validation."""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmokit.config import known_part, parse_record
from elmokit.errors import FormatError
from elmokit.files.atomic import atomic_file, named
from elmokit.files.json_files import jsonable, parse_json

METRICS_FILE, RUN_FILE = "metrics.jsonl", "run.json"
"""The log of a run, and its settings beside it."""


class RunLog:
    """Append rows to a run's ``metrics.jsonl``.

    Rows after ``resume_step``, the step of the checkpoint to resume from, are dropped first,
    because the run repeats them; 0 starts a new file.
    """

    def __init__(self, path: Path, *, resume_step: int = 0) -> None:
        self.path = path
        kept = [row for row in read_log(path) if row["step"] <= resume_step] if resume_step else []
        content = "".join(map(_line, kept)).encode()
        if path.exists() and path.read_bytes() == content:
            return  # so that its time stays that of the last row
        with atomic_file(path) as temp_path:
            temp_path.write_bytes(content)

    def begin(self) -> None:
        """Show that the run goes on, before its first row."""
        self.path.touch()

    def write(self, row: Mapping[str, Any]) -> None:
        """Append one row; it must have ``step``. What is not finite is null."""
        with named(self.path), self.path.open("a", encoding="utf-8") as file:
            file.write(_line(row))
            file.flush()
            os.fsync(file.fileno())  # the checkpoint after it must not be newer than the log


def _line(row: Mapping[str, Any]) -> str:
    return json.dumps(jsonable(row)) + "\n"


def read_log(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a log, without a last line that was cut off by a kill.

    Raises:
        FormatError: if another line is damaged or has no ``step``.
    """
    if not path.exists():
        return []
    *lines, last = path.read_bytes().split(b"\n")
    if lines and not last:
        last = lines.pop()
    rows = [_row(line, path, number) for number, line in enumerate(lines, start=1)]
    with suppress(FormatError):
        rows.append(_row(last, path, len(lines) + 1))
    return rows


class GrowingLog:
    """Reads the rows of a log while a run appends to it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._num_bytes, self._num_lines, self._last_line = 0, 0, b""

    def new_rows(self) -> list[dict[str, Any]]:
        """Return the rows of the complete lines that no earlier call has read.

        All are read again after a resumed run has dropped rows.

        Raises:
            FormatError: if a line is damaged or has no ``step``.
        """
        if not self.path.exists():
            return []
        with self.path.open("rb") as file:
            file.seek(self._num_bytes - len(self._last_line))
            if file.read(len(self._last_line)) != self._last_line:
                file.seek(0)
                self._num_bytes, self._num_lines, self._last_line = 0, 0, b""
            *lines, _ = file.read().split(b"\n")
        rows = [_row(line, self.path, self._num_lines + k) for k, line in enumerate(lines, start=1)]
        self._num_bytes += sum(len(line) + 1 for line in lines)
        self._num_lines += len(lines)
        if lines:
            self._last_line = lines[-1] + b"\n"
        return rows


def _row(line: bytes, path: Path, number: int) -> dict[str, Any]:
    where, advice = f"{path}, line {number}", "Remove the line, or start a new run."
    row = parse_json(line, source=where, advice=advice)
    parse_record(_Step, known_part(_Step, row), source=where, advice=advice)
    return row


@dataclass(frozen=True)
class _Step:
    step: int
