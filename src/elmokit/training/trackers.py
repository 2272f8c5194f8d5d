"""Experiment trackers: they get the rows of a run's ``metrics.jsonl``, also while it grows.

A new tracker is a class that follows `Tracker`, or a function that returns one, and a line in
`TRACKERS`.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from elmokit.errors import InputError, MissingExtraError
from elmokit.files.changes import flattened
from elmokit.files.json_files import read_json
from elmokit.training.metrics_log import METRICS_FILE, RUN_FILE, GrowingLog, read_log

PROJECT = "elmokit"
POLL_SECONDS = 2.0


class Tracker(Protocol):
    """Where figures go; made with the run's directory and its settings (flat, JSON-able)."""

    def log(self, step: int, figures: Mapping[str, float]) -> None:
        """Add the figures of an update or a validation."""
        ...

    def close(self) -> None:
        """Write what is left."""
        ...


class TensorBoard:
    """Event files in ``RUN/tensorboard``."""

    def __init__(self, run_dir: Path, settings: Mapping[str, Any]) -> None:
        _library("tensorboard")
        from torch.utils.tensorboard.writer import SummaryWriter

        self._writer = SummaryWriter(str(run_dir / "tensorboard"))
        self._writer.add_text("settings", "\n".join(f"    {k}: {v}" for k, v in settings.items()))

    def log(self, step: int, figures: Mapping[str, float]) -> None:
        """Add scalars."""
        for name, value in figures.items():
            self._writer.add_scalar(name, value, step)

    def close(self) -> None:
        """Write what is left."""
        self._writer.close()


class LibraryRun:
    """A run of a library that has the functions ``log`` and ``finish``."""

    def __init__(self, run: Any) -> None:
        self._run = run

    def log(self, step: int, figures: Mapping[str, float]) -> None:
        """Add a row."""
        self._run.log(dict(figures), step=step)

    def close(self) -> None:
        """Finish the run."""
        self._run.finish()


def weights_and_biases(run_dir: Path, settings: Mapping[str, Any]) -> LibraryRun:
    """Start a run of W&B, whose own variables are respected (``WANDB_MODE=offline``)."""
    wandb = _library("wandb")
    return LibraryRun(wandb.init(name=run_dir.name, config=dict(settings), dir=str(run_dir)))


def trackio(run_dir: Path, settings: Mapping[str, Any]) -> LibraryRun:
    """Start a run of Trackio, in the project ``elmokit``."""
    library = _library("trackio")
    library.init(project=PROJECT, name=run_dir.name, config=dict(settings))
    return LibraryRun(library)


class MLflow:
    """A run of MLflow, at ``MLFLOW_TRACKING_URI`` or MLflow's default."""

    def __init__(self, run_dir: Path, settings: Mapping[str, Any]) -> None:
        self._mlflow = _library("mlflow")
        self._mlflow.start_run(run_name=run_dir.name)
        self._mlflow.log_params({key: str(value)[:500] for key, value in settings.items()})

    def log(self, step: int, figures: Mapping[str, float]) -> None:
        """Add a row."""
        self._mlflow.log_metrics(dict(figures), step=step)

    def close(self) -> None:
        """Finish the run."""
        self._mlflow.end_run()


TRACKERS: dict[str, Callable[[Path, Mapping[str, Any]], Tracker]] = {
    "tensorboard": TensorBoard,
    "wandb": weights_and_biases,
    "mlflow": MLflow,
    "trackio": trackio,
}
"""(run directory, settings) -> tracker."""


def track(
    run_dir: Path, name: str, *, follow: bool = False, poll_seconds: float = POLL_SECONDS
) -> int:
    """Send a run's log to a tracker; return the number of rows.

    ``follow`` waits for further rows until the process is interrupted (Ctrl-C). Rows that a resumed
    run repeats are sent once.

    Raises:
        InputError: if there is no such tracker, or the directory has no log.
        MissingExtraError: if the tracker's library is missing.
        FormatError: if the log is damaged.
    """
    if name not in TRACKERS:
        raise InputError(f"There is no tracker {name!r}: choose one of {', '.join(TRACKERS)}.")
    path = run_dir / METRICS_FILE
    if not path.is_file():
        raise InputError(f"{run_dir} has no {METRICS_FILE}: it is not a run of pretrain or train.")
    count = 0
    with closing(TRACKERS[name](run_dir, _settings(run_dir))) as tracker:
        try:
            for row in _rows(path, follow=follow, poll_seconds=poll_seconds):
                figures = {key: value for key, value in row.items() if _is_figure(key, value)}
                tracker.log(row["step"], figures)
                count += 1
        except KeyboardInterrupt:
            if not follow:
                raise
    return count


def _rows(path: Path, *, follow: bool, poll_seconds: float) -> Iterator[dict[str, Any]]:
    """Yield the rows of a log, each kind of row once per step."""
    seen: set[tuple[int, frozenset[str]]] = set()
    log = GrowingLog(path)
    while True:
        for row in log.new_rows() if follow else read_log(path):
            kind = row["step"], frozenset(row)
            if kind not in seen:
                seen.add(kind)
                yield row
        if not follow:
            return
        time.sleep(poll_seconds)


def _is_figure(key: str, value: object) -> bool:
    return key != "step" and isinstance(value, int | float) and not isinstance(value, bool)


def _settings(run_dir: Path) -> dict[str, Any]:
    """Return the run's resolved settings by dotted names, as far as it has written them."""
    path = run_dir / RUN_FILE
    if not path.is_file():
        return {}
    record = read_json(path, advice="Copy the whole directory again.")
    return flattened(record.get("config", {}))


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingExtraError(name, extra=name) from error
