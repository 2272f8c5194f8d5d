"""The curves of a training run: plots, TensorBoard, and what the page shows."""

import json
import os
import time
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmokit.errors import InputError, needs_extra, quoted
from elmokit.files.atomic import atomic_file
from elmokit.files.json_files import read_json
from elmokit.files.sources import damage
from elmokit.jobs.job import MARK, METRICS_FILE, RUN_FILE, command_of, read_log
from elmokit.weights.locate import CONFIG_NAME, RUN_CONFIG_NAME

PICTURE_SUFFIXES = (".png", ".pdf", ".svg")
DOTS_PER_INCH = 150
BEFORE_FILE, AFTER_FILE = "before.json", "after.json"
"""Perplexities of the base model and of the fine-tuned one."""
MAX_ROWS = 4000
"""Rows of a log that are shown, evenly thinned; those with held-out perplexities all are."""

_ADVICE = "Make it again, or remove it."
_QUIET_SECONDS = 600  # without a new line in its log a run counts as stopped
_COPIED_WITHIN_SECONDS = 60  # by which the log of a finished run may be newer, as in a copy
_LOSSES = {"forward": "forward_loss", "backward": "backward_loss", "mean": "loss"}
_PERPLEXITIES = {"forward": "valid_forward", "backward": "valid_backward", "mean": "valid_mean"}


def check_matplotlib() -> None:
    """Raise `MissingExtraError` if matplotlib is not installed."""
    new_figure(1, 1)


def check_picture_name(path: Path) -> None:
    """Raise `InputError` if a picture of this name cannot be written."""
    if path.suffix.lower() not in PICTURE_SUFFIXES:
        allowed = ", ".join(PICTURE_SUFFIXES)
        raise InputError(f"The suffix of the plot must be one of {allowed}; got {path.name!r}.")


def new_figure(width: float, height: float) -> Any:
    """Return an empty figure of so many inches; it needs no display."""
    with needs_extra("plots", module="matplotlib"):
        from matplotlib.figure import Figure
    return Figure(figsize=(width, height), dpi=DOTS_PER_INCH, layout="constrained")


def write_picture(figure: Any, path: Path) -> None:
    """Write a figure in the format that the suffix names."""
    with atomic_file(path) as temp_path:
        figure.savefig(temp_path, format=path.suffix.lower()[1:])


@dataclass(frozen=True)
class RunCurves:
    """The figures of a run as far as it is."""

    rows: list[dict[str, Any]]
    num_rows: int
    """Rows of its log, before it was thinned."""
    is_running: bool
    before: dict[str, float | None]
    """Perplexities before fine-tuning, by text; None if infinite."""
    after: dict[str, float | None]


def read_training_run(directory: Path) -> RunCurves:
    """Read the figures of a run, also while it is written."""
    rows = read_log(directory / METRICS_FILE)
    stride = -(-len(rows) // MAX_ROWS) or 1
    shown = [
        row
        for i, row in enumerate(rows)
        if i % stride == 0 or i == len(rows) - 1 or row.keys() & set(_PERPLEXITIES.values())
    ]
    with damage(directory, _ADVICE, what=f"{BEFORE_FILE} or {AFTER_FILE}"):
        before, after = (
            {
                name: None if report["mean"] is None else float(report["mean"])
                for name, report in _read(directory / file).items()
            }
            for file in (BEFORE_FILE, AFTER_FILE)
        )
    is_running = _is_running(directory)
    return RunCurves(shown, len(rows), is_running, before, after)


def _read(path: Path) -> dict[str, Any]:
    return read_json(path, advice=_ADVICE) if path.exists() else {}


def _is_running(directory: Path) -> bool:
    """Return whether something was written lately, and a finished model not after it."""
    last = _changed(directory / METRICS_FILE)
    if not last:  # the text is being prepared, by files that come and go
        paths = (Path(at, name) for at, _, names in os.walk(directory) for name in (".", *names))
        last = max(map(_changed, paths), default=0.0)
    if last - _changed(directory / CONFIG_NAME) < _COPIED_WITHIN_SECONDS:
        return False
    return time.time() - last < _QUIET_SECONDS


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def check_run_dir(directory: Path) -> None:
    """Refuse what is no directory of a training run, or one of a task."""
    if not directory.is_dir():
        raise FileNotFoundError(f"There is no run {directory}: a directory is expected.")
    command = command_of(directory)
    if (directory / RUN_CONFIG_NAME).exists() or command == "train":
        raise InputError(
            f"{directory} is a run of `elmokit train`, which has no perplexities to draw. See "
            f"`elmokit explore --task {quoted(directory)}`."
        )
    if command not in (None, "pretrain", "finetune"):
        raise InputError(
            f"{directory} is a run of `elmokit {command}`: there are no losses to draw."
        )
    if not any((directory / name).exists() for name in (RUN_FILE, METRICS_FILE, MARK)):
        raise InputError(
            f"{directory} is no training run: it has no {RUN_FILE} and no {METRICS_FILE}."
        )


def plot_run(directory: Path, path: Path) -> RunCurves:
    """Draw loss and held-out perplexity of a run by direction, and return what was drawn.

    A line across shows the base model of a fine-tuning run. ``path`` ends in .png, .pdf or .svg.
    """
    check_run_dir(directory)
    check_picture_name(path)
    run = read_training_run(directory)
    if not run.rows:
        raise InputError(f"{directory} has no rows in {METRICS_FILE} yet: nothing to draw.")
    figure = new_figure(9, 4)
    left, right = figure.subplots(1, 2)
    for axes, columns, label in (
        (left, _LOSSES, "loss (nats)"),
        (right, _PERPLEXITIES, "held-out perplexity"),
    ):
        for name, column in columns.items():
            points = [(row["step"], row[column]) for row in run.rows if row.get(column) is not None]
            if points:
                axes.plot(*zip(*points, strict=True), label=name, marker="." * (len(points) < 30))
        axes.set_xlabel("update")
        axes.set_ylabel(label)
    before = run.before.get("in_domain")
    if before is not None:
        right.axhline(before, label="before fine-tuning", color="gray", linestyle="--")
    for axes in (left, right):
        if axes.lines:
            axes.legend(fontsize="small")
    write_picture(figure, path)
    return run


def track(run_dir: Path, *, follow: bool = False) -> int:
    """Write a run's figures and settings into ``RUN/tensorboard``; return the number of rows.

    ``follow`` waits for further rows until Ctrl-C. Rows that a resumed run repeats come once.
    """
    if not (run_dir / METRICS_FILE).is_file():
        raise InputError(f"{run_dir} has no {METRICS_FILE}: it is no run of pretrain or train.")
    with needs_extra("tensorboard", module="tensorboard"):
        from torch.utils.tensorboard.writer import SummaryWriter
    config, written = _read(run_dir / RUN_FILE).get("config"), set[tuple[int, frozenset[str]]]()
    until_interrupted = suppress(KeyboardInterrupt) if follow else nullcontext()
    with SummaryWriter(str(run_dir / "tensorboard")) as writer, until_interrupted:
        writer.add_text("settings", f"```\n{json.dumps(config, indent=2)}\n```")
        while True:
            for row in read_log(run_dir / METRICS_FILE):
                if (columns := (row["step"], frozenset(row))) in written:
                    continue
                for name, value in row.items():
                    if name != "step" and type(value) in (int, float):
                        writer.add_scalar(name, value, row["step"])
                written.add(columns)
            if not follow:
                break
            time.sleep(2)
    return len(written)
