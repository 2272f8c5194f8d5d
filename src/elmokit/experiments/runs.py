"""The outcome of a run on disk, in a directory of its own.

While a task is trained, the directory is that of the training. With ``result.json``, which is
written last, the run has ended; the directory then also is that of the trained model.
"""

import platform
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from os import cpu_count
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch

from elmokit.config import parse_record
from elmokit.errors import counted
from elmokit.files.json_files import read_json, write_json
from elmokit.inference.precision import pick_device
from elmokit.probes.layer_weights import MixWeights
from elmokit.tasks.task import TaskScore
from elmokit.version import __version__

RESULT_FILE, DIVERGED_FILE = "result.json", "diverged.json"
RESULTS_FILE = "results.json"


@dataclass(frozen=True, kw_only=True)
class FileScore:
    metric: str
    value: float
    details: Mapping[str, Any] = field(default_factory=dict)
    counts: list[Any] = field(default_factory=list)
    """Counts per example, (examples, k), from which the main score is computed; of probes, those of
    each representation."""
    sampling_units: list[int] = field(default_factory=list)
    """(examples,): the sampling unit of each; empty: an example is one."""

    @classmethod
    def of(cls, score: TaskScore) -> "FileScore":
        return FileScore(
            metric=score.metric, value=score.value, details=score.details,
            counts=score.counts.tolist(), sampling_units=score.sampling_units.tolist(),
        )  # fmt: skip

    @property
    def counts_by_unit(self) -> np.ndarray:
        """The sums of the counts of each sampling unit: (units, k)."""
        counts = np.array(self.counts, dtype=np.float64)
        if not self.sampling_units:
            return counts
        sums = np.zeros((max(self.sampling_units) + 1, counts.shape[1]))
        np.add.at(sums, np.array(self.sampling_units), counts)
        return sums


@dataclass(frozen=True, kw_only=True)
class RunResult(FileScore):
    """The result of a run; its score is that of the dev set, with the weights of the best epoch."""

    num_examples: int
    epochs: list[dict[str, float]] = field(default_factory=list)
    """``epoch``, ``loss`` and ``held_out`` (the score that chose the best one) of each epoch."""
    best_epoch: int = 0
    seconds: float
    """Time of training and scoring the held-out part."""
    wall_seconds: float = 0.0
    """The same plus reading, scoring the dev set, and layers that were not cached."""
    layer_weights: tuple[MixWeights, ...] = ()
    made: Mapping[str, str] = field(default_factory=dict)
    """Date, hardware and versions; where the training was resumed, of its last part."""

    @property
    def held_out(self) -> float:
        return max(row["held_out"] for row in self.epochs)

    @property
    def ended_at_its_best(self) -> bool:
        """Whether the last epoch was the best one, so that more might be better."""
        return bool(self.epochs) and self.best_epoch == self.epochs[-1]["epoch"]


Outcome = RunResult | str
"""A result, or why there is none."""
Score = TypeVar("Score", bound=FileScore)


def read_outcome(run_dir: Path) -> Outcome | None:
    path = run_dir / DIVERGED_FILE
    if path.is_file():
        advice = "Remove that file to repeat the run."
        return f"diverged: {read_json(path, advice=advice, required=['message'])['message']}"
    return read_score(run_dir / RESULT_FILE, RunResult)


def read_score(path: Path, kind: type[Score]) -> Score | None:
    """Return a stored score, or none without one."""
    if not path.is_file():
        return None
    advice = f"Remove {path} to repeat what it is the result of."
    table = read_json(path, advice=advice, required=["result"])["result"]
    return parse_record(kind, table, source=path, advice=advice)


def write_score(path: Path, score: FileScore, **facts: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, {**facts, "result": asdict(score)}, indent=None)


def write_divergence(run_dir: Path, message: str) -> None:
    """Replace the training of a run, whose weights help nobody, by a record."""
    shutil.rmtree(run_dir, ignore_errors=True)
    write_json(run_dir / DIVERGED_FILE, {"message": message})


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")


def provenance(device: str) -> dict[str, str]:
    torch_device = pick_device(device)
    gpu = f", {torch.cuda.get_device_name(torch_device)}" if torch_device.type == "cuda" else ""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    processor = next(names, "") or platform.processor() or platform.machine()
    cores, threads = cpu_count() or 1, torch.get_num_threads()
    return {
        "date": now(),
        "hardware": f"{processor}, {counted(cores, 'core')}, {counted(threads, 'thread')}{gpu}",
        "versions": f"elmokit {__version__}, Python {platform.python_version()}, "
        f"PyTorch {torch.__version__}, NumPy {version('numpy')}",
    }
