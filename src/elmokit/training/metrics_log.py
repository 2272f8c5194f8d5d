"""``metrics.jsonl``: one JSON object per line for every logged step and every validation."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmokit.config import known_part, parse_record
from elmokit.errors import FormatError
from elmokit.files.atomic import atomic_file, named
from elmokit.files.json_files import parse_json


class RunLog:
    """Append rows to a run's ``metrics.jsonl``.

    Rows after ``resume_step``, the step of the checkpoint to resume from, are dropped first,
    because the run repeats them; 0 starts a new file.
    """

    def __init__(self, path: Path, *, resume_step: int = 0) -> None:
        self.path = path
        kept = [row for row in read_log(path) if row["step"] <= resume_step] if resume_step else []
        with atomic_file(path) as temp_path:
            temp_path.write_text("".join(json.dumps(row) + "\n" for row in kept), encoding="utf-8")

    def write(self, row: Mapping[str, Any]) -> None:
        """Append one row; it must have ``step``."""
        with named(self.path), self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(dict(row)) + "\n")


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


def _row(line: bytes, path: Path, number: int) -> dict[str, Any]:
    where, advice = f"{path}, line {number}", "Remove the line, or start a new run."
    row = parse_json(line, source=where, advice=advice)
    parse_record(_Step, known_part(_Step, row), source=where, advice=advice)
    return row


@dataclass(frozen=True)
class _Step:
    step: int
