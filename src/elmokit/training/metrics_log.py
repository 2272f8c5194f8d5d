"""``metrics.jsonl``: one JSON object per line for every logged step and every validation."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from elmokit.files.atomic import atomic_file, named


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
    """Return the rows of a log, without a last line that was cut off by a kill."""
    if not path.exists():
        return []
    rows = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError:
            break
    return rows
