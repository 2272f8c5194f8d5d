"""``metrics.jsonl``: one JSON object per line for every logged step and every validation."""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from elmokit.errors import FormatError
from elmokit.field_checks import is_number
from elmokit.files.atomic import atomic_file, named
from elmokit.files.json_files import jsonable, parse_json

METRICS_FILE = "metrics.jsonl"


class MetricsLog:
    """Append rows to the ``metrics.jsonl`` of a directory.

    Rows after ``resume_step``, the step of the checkpoint to resume from, are dropped first,
    because the job repeats them; 0 starts a new file.
    """

    def __init__(self, directory: Path, *, resume_step: int = 0) -> None:
        self.path = directory / METRICS_FILE
        rows = read_log(self.path) if resume_step else []
        content = "".join(_line(row) for row in rows if row["step"] <= resume_step).encode()
        if self.path.exists() and self.path.read_bytes() == content:
            return  # so that its time stays that of the last row
        with atomic_file(self.path) as temp_path:
            temp_path.write_bytes(content)

    def begin(self) -> None:
        """Show that the job goes on, before its first row."""
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
    """Return the rows of a log, without a last line that was cut off by a kill."""
    if not path.exists():
        return []
    *lines, last = path.read_bytes().split(b"\n")
    if lines and not last:
        last = lines.pop()
    rows = [_row(line, path, number) for number, line in enumerate(lines, start=1)]
    with suppress(FormatError):
        rows.append(_row(last, path, len(lines) + 1))
    return rows


def _row(line: bytes, path: Path, number: int) -> dict[str, Any]:
    where, advice = f"{path}, line {number}", "Remove the line, or start a new run."
    row = parse_json(line, source=where, advice=advice, required=["step"])
    if not is_number(row["step"], whole=True):
        raise FormatError(f"{where}: `step` must be a whole number. {advice}")
    return row
