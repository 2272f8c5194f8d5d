"""A run's ``metrics.jsonl`` for TensorBoard and other trackers, also while it grows."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from elmokit.errors import InputError, MissingExtraError
from elmokit.files.json_files import read_json
from elmokit.jobs.identity import flattened
from elmokit.jobs.job import RUN_FILE, is_begun
from elmokit.jobs.metrics_log import METRICS_FILE, read_log

POLL_SECONDS = 2.0


def track(run_dir: Path, *, follow: bool = False) -> int:
    """Write a run's figures and settings as TensorBoard events; return the number of rows.

    The events are in ``RUN/tensorboard``. ``follow`` waits for further rows until Ctrl-C.

    Raises:
        InputError: if the directory has no log.
        MissingExtraError: without TensorBoard.
        FormatError: if the log is damaged.
    """
    try:
        from torch.utils.tensorboard.writer import SummaryWriter
    except ImportError as error:
        raise MissingExtraError("tensorboard", extra="tensorboard") from error
    rows = run_rows(run_dir, follow=follow)
    count = 0
    with SummaryWriter(str(run_dir / "tensorboard")) as writer:
        settings = run_settings(run_dir)
        writer.add_text("settings", "\n".join(f"    {k}: {v}" for k, v in settings.items()))
        try:
            for step, figures in rows:
                for name, value in figures.items():
                    writer.add_scalar(name, value, step)
                count += 1
        except KeyboardInterrupt:
            if not follow:
                raise
    return count


def run_rows(run_dir: Path, *, follow: bool = False) -> Iterator[tuple[int, dict[str, float]]]:
    """Return the updates and validations of a run as (step, figures), for any tracker.

    ``follow`` waits for further rows for ever. Rows that a resumed run repeats come once.

    Raises:
        InputError: at once, if the directory has no log.
        FormatError: while reading, if the log is damaged.
    """
    path = run_dir / METRICS_FILE
    if not path.is_file():
        raise InputError(f"{run_dir} has no {METRICS_FILE}: it is not a run of pretrain or train.")
    return _rows(path, follow=follow)


def run_settings(run_dir: Path) -> dict[str, Any]:
    """Return the run's resolved settings by dotted names, as far as it has written them."""
    if not is_begun(run_dir):
        return {}
    record = read_json(run_dir / RUN_FILE, advice="Copy the whole directory again.")
    return flattened(record.get("config", {}))


def _rows(path: Path, *, follow: bool) -> Iterator[tuple[int, dict[str, float]]]:
    seen: set[tuple[int, frozenset[str]]] = set()
    while True:
        for row in read_log(path):
            columns = row["step"], frozenset(row)
            if columns not in seen:
                seen.add(columns)
                yield row["step"], {key: x for key, x in row.items() if _is_figure(key, x)}
        if not follow:
            return
        time.sleep(POLL_SECONDS)


def _is_figure(key: str, value: object) -> bool:
    return key != "step" and isinstance(value, int | float) and not isinstance(value, bool)
