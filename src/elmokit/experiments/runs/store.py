"""Finished runs on disk, each in a directory that is complete or absent."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from elmokit.config import parse_record
from elmokit.experiments.plan import PlannedRun
from elmokit.files.arrays import open_archive
from elmokit.files.atomic import atomic_directory
from elmokit.files.json_files import read_json, write_json
from elmokit.probes.layer_weights import MixWeights

RESULT_FILE, COUNTS_FILE = "result.json", "counts.npz"
DIVERGED_ENDING = ".diverged.json"


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """The result of a run."""

    metric: str
    value: float
    """The main score, in percent."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """Further scores, by name."""
    num_examples: int
    """Number of training examples."""
    epochs: tuple[Mapping[str, float], ...] = ()
    """``epoch``, ``loss`` and ``dev`` of each epoch."""
    best_epoch: int = 0
    seconds: float
    """Time of training and scoring the dev set."""
    wall_seconds: float = 0.0
    """The same plus reading, and computing biLM layers that were not cached."""
    layer_weights: tuple[MixWeights, ...] = ()
    """Learned layer weights at each position."""
    made: Mapping[str, str] = field(default_factory=dict)
    """Date, hardware and versions."""
    counts: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    """Counts per dev example, of shape (examples, k), that the main score is computed from."""


class RunStore:
    """Results by the id of their run, in a directory created with the first result."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def path(self, run: PlannedRun) -> Path:
        """Return the directory of a run."""
        return self.directory / run.id

    def __contains__(self, run: PlannedRun) -> bool:
        return (self.path(run) / RESULT_FILE).is_file()

    def is_settled(self, run: PlannedRun) -> bool:
        """Return whether a run has a result or has diverged, so it is not repeated."""
        return run in self or self._divergence_path(run).is_file()

    def divergence(self, run: PlannedRun) -> str | None:
        """Return the message of a diverged run, or none; `FormatError` if it is damaged."""
        path = self._divergence_path(run)
        if run in self or not path.is_file():
            return None
        advice = "Remove that file to repeat the run."
        return f"diverged: {read_json(path, advice=advice, required=['message'])['message']}"

    def write_divergence(self, run: PlannedRun, message: str) -> None:
        """Record that a run diverged."""
        write_json(self._divergence_path(run), {"run": _table(run), "message": message})

    def _divergence_path(self, run: PlannedRun) -> Path:
        return self.directory / f"{run.id}{DIVERGED_ENDING}"

    def read(self, run: PlannedRun) -> RunResult | None:
        """Return the result of a run, or none without one; `FormatError` if it is damaged."""
        if run not in self:
            return None
        directory = self.path(run)
        advice = "Remove that directory to repeat the run."
        path = directory / RESULT_FILE
        table = read_json(path, advice=advice, required=["result"])
        result = parse_record(RunResult, table["result"], source=path, advice=advice)
        with open_archive(directory / COUNTS_FILE, advice=advice) as stored:
            epochs = tuple(table["result"].get("epochs", ()))
            return replace(result, counts=stored["counts"], epochs=epochs)

    def write(self, run: PlannedRun, result: RunResult) -> None:
        """Store a result, unless another process has stored one meanwhile."""
        table = {
            "run": _table(run),
            "result": {
                **{name: getattr(result, name) for name in RunResult.__dataclass_fields__},
                "epochs": [dict(one) for one in result.epochs],
                "layer_weights": [vars(one) for one in result.layer_weights],
                "details": dict(result.details), "made": dict(result.made),
            },
        }  # fmt: skip
        del table["result"]["counts"]
        with atomic_directory(self.path(run), keep=lambda: run in self) as temp_path:
            write_json(temp_path / RESULT_FILE, table)
            np.savez_compressed(temp_path / COUNTS_FILE, counts=result.counts)


def _table(run: PlannedRun) -> dict[str, Any]:
    return {
        "kind": run.kind, "task": run.task, "dataset": run.dataset, "condition": run.condition,
        "share": run.share, "seed": run.seed, "metadata": dict(run.metadata),
    }  # fmt: skip
