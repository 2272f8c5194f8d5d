"""The runs of an experiment on disk, a directory for each.

While a task is trained, the directory is that of the training. With ``result.json``, which is
written last, the run is finished; the directory then also is that of the trained model.
"""

import platform
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from importlib.metadata import version
from os import cpu_count
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch

from elmokit.config import parse_record
from elmokit.experiments.plan import ID_LENGTH, PlannedRun
from elmokit.files.arrays import open_archive
from elmokit.files.atomic import atomic_directory, atomic_file
from elmokit.files.json_files import read_json, write_json
from elmokit.inference.precision import pick_device
from elmokit.jobs.job import CHECKPOINTS
from elmokit.probes.layer_weights import MixWeights
from elmokit.tasks.task import TaskScore
from elmokit.version import __version__
from elmokit.wording import counted

RESULT_FILE, COUNTS_FILE, DIVERGED_FILE = "result.json", "counts.npz", "diverged.json"
ARRAYS = ("counts", "sampling_units")
"""Fields that are in `COUNTS_FILE`."""


@dataclass(frozen=True, kw_only=True)
class FileScore:
    """The score of a run on a file."""

    metric: str
    value: float
    """The main score, in percent."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """Further scores, by name."""
    counts: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    """Counts per example, of shape (examples, k), that the main score is computed from."""
    sampling_units: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """(examples,): the sampling unit of each; empty: an example is one."""

    @classmethod
    def of(cls, score: TaskScore) -> "FileScore":
        """Take what is stored of a task's score."""
        return FileScore(**{part.name: getattr(score, part.name) for part in fields(FileScore)})


Score = TypeVar("Score", bound=FileScore)


@dataclass(frozen=True, kw_only=True)
class RunResult(FileScore):
    """The result of a run; its score is that of the dev set, with the weights of the best epoch."""

    num_examples: int
    """Number of training examples."""
    epochs: tuple[Mapping[str, Any], ...] = ()
    """``epoch``, ``loss`` and ``held_out`` (the score that chose the best one) of each epoch."""
    best_epoch: int = 0
    seconds: float
    """Time of training and scoring the held-out part."""
    wall_seconds: float = 0.0
    """The same plus reading, scoring the dev set, and biLM layers that were not cached; where the
    training was resumed, these since then."""
    layer_weights: tuple[MixWeights, ...] = ()
    """Learned layer weights at each position."""
    made: Mapping[str, str] = field(default_factory=dict)
    """Date, hardware and versions; where the training was resumed, of its last part."""

    @property
    def held_out(self) -> float:
        """Score of the best epoch on the held-out part of the training set."""
        return max(row["held_out"] for row in self.epochs)

    @property
    def ended_at_its_best(self) -> bool:
        """Whether the last epoch was the best one, so that more might be better."""
        return bool(self.epochs) and self.best_epoch == self.epochs[-1]["epoch"]


@dataclass(frozen=True)
class RunStore:
    """Results of runs in a directory, by run id."""

    directory: Path

    def run_dir(self, run: PlannedRun) -> Path:
        """Return the directory of a run."""
        return self.directory / run.id

    def is_settled(self, run: PlannedRun) -> bool:
        """Return whether a run has a result or has diverged, so it is not repeated."""
        names = (RESULT_FILE, DIVERGED_FILE)
        return any((self.run_dir(run) / name).is_file() for name in names)

    def read(self, run: PlannedRun) -> RunResult | None:
        """Return the result of a run, or none without one; `FormatError` if it is damaged."""
        return _read(self.run_dir(run), RunResult)

    def write(self, run: PlannedRun, result: RunResult) -> None:
        """Store a result; the checkpoints of the training are removed."""
        _write(self.run_dir(run), {"run": vars(run)}, result)
        self.remove_checkpoints(run)

    def remove_checkpoints(self, run: PlannedRun) -> None:
        """Remove the checkpoints of a finished run."""
        shutil.rmtree(self.run_dir(run) / CHECKPOINTS, ignore_errors=True)

    def divergence(self, run: PlannedRun) -> str | None:
        """Return why a run has diverged, or none; `FormatError` if the file is damaged."""
        path = self.run_dir(run) / DIVERGED_FILE
        if not path.is_file():
            return None
        advice = "Remove that file to repeat the run."
        return f"diverged: {read_json(path, advice=advice, required=['message'])['message']}"

    def write_divergence(self, run: PlannedRun, message: str) -> None:
        """Replace the training of a run by a record that it diverged."""
        # weights that are not finite help nobody
        shutil.rmtree(self.run_dir(run), ignore_errors=True)
        write_json(self.run_dir(run) / DIVERGED_FILE, {"run": vars(run), "message": message})

    def read_test(self, run: PlannedRun, file_hash: str) -> FileScore | None:
        """Return the score of a run on a test file, or none; `FormatError` if it is damaged."""
        return _read(self._test_dir(run, file_hash), FileScore)

    def write_test(self, run: PlannedRun, file_hash: str, score: FileScore) -> None:
        """Store the score of a finished run on a test file."""
        with atomic_directory(self._test_dir(run, file_hash)) as temp_path:
            _write(temp_path, {"test": file_hash}, score)

    def _test_dir(self, run: PlannedRun, file_hash: str) -> Path:
        return self.run_dir(run) / f"test-{file_hash[:ID_LENGTH]}"


def _read(directory: Path, kind: type[Score]) -> Score | None:
    path = directory / RESULT_FILE
    if not path.is_file():
        return None
    advice = f"Remove {directory} to repeat what it is the result of."
    table = read_json(path, advice=advice, required=["result"])["result"]
    result = parse_record(kind, table, source=path, advice=advice)
    with open_archive(directory / COUNTS_FILE, advice=advice) as stored:
        return replace(result, **{name: stored[name] for name in ARRAYS})


def _write(directory: Path, facts: Mapping[str, Any], score: FileScore) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    with atomic_file(directory / COUNTS_FILE) as temp_path:
        np.savez_compressed(temp_path, **{name: getattr(score, name) for name in ARRAYS})
    table = {name: value for name, value in asdict(score).items() if name not in ARRAYS}
    # last: with it, the run is finished
    write_json(directory / RESULT_FILE, {**facts, "result": table})


def now() -> str:
    """Return date and time, as text."""
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")


def provenance(device: str) -> dict[str, str]:
    """Return date, hardware (with the GPU, if ``device`` is one) and versions, as text."""
    torch_device = pick_device(device)
    gpu = f", {torch.cuda.get_device_name(torch_device)}" if torch_device.type == "cuda" else ""
    cores, threads = cpu_count() or 1, torch.get_num_threads()
    return {
        "date": now(),
        "hardware": f"{_processor()}, {counted(cores, 'core')}, {counted(threads, 'thread')}{gpu}",
        "versions": f"elmokit {__version__}, Python {platform.python_version()}, "
        f"PyTorch {torch.__version__}, NumPy {version('numpy')}",
    }


def _processor() -> str:
    """Return the processor's name, or its architecture if the name is unknown."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.processor() or platform.machine()
