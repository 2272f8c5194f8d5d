"""A run's ``metrics.jsonl`` for TensorBoard, also while it grows."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from elmokit.errors import InputError, MissingExtraError
from elmokit.files.json_files import read_json
from elmokit.jobs.job import RUN_FILE, is_begun
from elmokit.jobs.metrics_log import METRICS_FILE, read_log

POLL_SECONDS = 2.0


def track(run_dir: Path, *, follow: bool = False) -> int:
    """Write a run's figures and settings into ``RUN/tensorboard``; return the number of rows.

    ``follow`` waits for further rows until Ctrl-C. Rows that a resumed run repeats come once.
    """
    path = run_dir / METRICS_FILE
    if not path.is_file():
        raise InputError(f"{run_dir} has no {METRICS_FILE}: it is not a run of pretrain or train.")
    try:
        from torch.utils.tensorboard.writer import SummaryWriter
    except ImportError as error:
        raise MissingExtraError("tensorboard", extra="tensorboard") from error
    count = 0
    with SummaryWriter(str(run_dir / "tensorboard")) as writer:
        if is_begun(run_dir):
            record = read_json(run_dir / RUN_FILE, advice="Copy the whole directory again.")
            writer.add_text("settings", f"```\n{json.dumps(record.get('config'), indent=2)}\n```")
        try:
            for row in _rows(path, follow=follow):
                for name, value in row.items():
                    if name != "step" and type(value) in (int, float):
                        writer.add_scalar(name, value, row["step"])
                count += 1
        except KeyboardInterrupt:
            if not follow:
                raise
    return count


def _rows(path: Path, *, follow: bool) -> Iterator[dict[str, Any]]:
    seen: set[tuple[int, frozenset[str]]] = set()
    while True:
        for row in read_log(path):
            columns = row["step"], frozenset(row)
            if columns not in seen:
                seen.add(columns)
                yield row
        if not follow:
            return
        time.sleep(POLL_SECONDS)
