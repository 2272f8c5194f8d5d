"""Finished runs on disk, each in a directory that is complete or absent."""

import shutil
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from elmokit.config import parse_record
from elmokit.experiments.plan import ID_LENGTH, PlannedRun
from elmokit.files.arrays import open_archive
from elmokit.files.atomic import atomic_directory
from elmokit.files.json_files import read_json, write_json
from elmokit.files.locks import held_directory
from elmokit.files.temporary import remove_whole
from elmokit.probes.layer_weights import MixWeights
from elmokit.tasks.task import TaskScore
from elmokit.training.run_dir import CHECKPOINTS

RESULT_FILE, COUNTS_FILE = "result.json", "counts.npz"
ARRAYS = ("counts", "sampling_units")
"""Fields that are in `COUNTS_FILE`."""
DIVERGED_ENDING = ".diverged.json"


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
        """Keep what is needed of a task's score."""
        return FileScore(
            metric=score.metric, value=score.value, details=dict(score.details),
            counts=score.counts, sampling_units=score.sampling_units,
        )  # fmt: skip


Score = TypeVar("Score", bound=FileScore)


@dataclass(frozen=True, kw_only=True)
class RunResult(FileScore):
    """The result of a run; its score is that of the dev set, with the weights of the best epoch."""

    num_examples: int
    """Number of training examples."""
    epochs: tuple[Mapping[str, float], ...] = ()
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
        return max(one["held_out"] for one in self.epochs)

    @property
    def ended_at_its_best(self) -> bool:
        """Whether the last epoch was the best one, so that more might be better."""
        return bool(self.epochs) and self.best_epoch == self.epochs[-1]["epoch"]

    def on_file(self, score: FileScore) -> "RunResult":
        """Return the result with the score of another file."""
        return replace(self, **{one.name: getattr(score, one.name) for one in fields(FileScore)})


class RunStore:
    """Results by the id of their run, in a directory created with the first lock or result.

    ``running`` in it has the locks, a directory for each run in progress; ``training`` the
    trainings without a result.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def path(self, run: PlannedRun) -> Path:
        """Return the directory of a run."""
        return self.directory / run.id

    def __contains__(self, run: PlannedRun) -> bool:
        return (self.path(run) / RESULT_FILE).is_file()

    def lock(self, run: PlannedRun) -> AbstractContextManager[None]:
        """Lock a run while it is executed; `FileExistsError` if another process has locked it."""
        busy = f"Another process executes the run {run.id} in {self.directory}."
        return held_directory(self.directory / "running" / run.id, busy=busy)

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
        """Record that a run diverged; remove its training."""
        write_json(self._divergence_path(run), {"run": _table(run), "message": message})
        self.remove_training(run)

    def _divergence_path(self, run: PlannedRun) -> Path:
        return self.directory / f"{run.id}{DIVERGED_ENDING}"

    def read(self, run: PlannedRun) -> RunResult | None:
        """Return the result of a run, or none without one; `FormatError` if it is damaged."""
        if run not in self:
            return None
        return _read(self.path(run), RunResult, advice="Remove that directory to repeat the run.")

    def write(self, run: PlannedRun, result: RunResult) -> None:
        """Store a result, unless another process has stored one meanwhile; remove the training."""
        table = {
            **_plain(result),
            "epochs": [dict(one) for one in result.epochs],
            "layer_weights": [vars(one) for one in result.layer_weights],
            "made": dict(result.made),
        }
        with atomic_directory(self.path(run), keep=lambda: run in self) as temp_path:
            _write(temp_path, {"run": _table(run), "result": table}, result)
        self.remove_training(run)

    def training_dir(self, run: PlannedRun) -> Path:
        """Return where a run is trained, and resumed until it has a result or has diverged."""
        return self.directory / "training" / run.id

    def remove_training(self, run: PlannedRun) -> None:
        """Remove the training of a run that has a result or has diverged."""
        if self.training_dir(run).exists():
            with suppress(OSError):  # it is no longer needed, but harmless
                remove_whole(self.training_dir(run))

    def model_dir(self, run: PlannedRun) -> Path:
        """Return where the trained model of a run is kept."""
        return self.directory / "models" / run.id

    def keep_model(self, run: PlannedRun, trained: Path) -> None:
        """Keep a trained model, without checkpoints, unless another process has stored its own."""
        with atomic_directory(self.model_dir(run), keep=lambda: run in self) as temp_path:
            without_checkpoints = shutil.ignore_patterns(CHECKPOINTS)
            shutil.copytree(trained, temp_path, ignore=without_checkpoints, dirs_exist_ok=True)

    def read_test(self, run: PlannedRun, file_hash: str) -> FileScore | None:
        """Return the score of a run on a test file, or none; `FormatError` if it is damaged."""
        directory = self._test_path(run, file_hash)
        if not (directory / RESULT_FILE).is_file():
            return None
        return _read(directory, FileScore, advice="Remove that directory to score the file again.")

    def write_test(self, run: PlannedRun, file_hash: str, score: FileScore) -> None:
        """Store the score of a run with a result on a test file."""
        with atomic_directory(self._test_path(run, file_hash)) as temp_path:
            _write(temp_path, {"test": file_hash, "result": _plain(score)}, score)

    def _test_path(self, run: PlannedRun, file_hash: str) -> Path:
        return self.path(run) / f"test-{file_hash[:ID_LENGTH]}"


def _read(directory: Path, kind: type[Score], advice: str) -> Score:
    path = directory / RESULT_FILE
    table = read_json(path, advice=advice, required=["result"])["result"]
    result = parse_record(kind, table, source=path, advice=advice)
    with open_archive(directory / COUNTS_FILE, advice=advice) as stored:
        more = {"epochs": tuple(table["epochs"])} if "epochs" in table else {}
        return replace(result, **{name: stored[name] for name in ARRAYS}, **more)


def _write(directory: Path, table: Mapping[str, Any], score: FileScore) -> None:
    write_json(directory / RESULT_FILE, table)
    arrays = {name: getattr(score, name) for name in ARRAYS}
    np.savez_compressed(directory / COUNTS_FILE, **arrays)


def _plain(score: FileScore) -> dict[str, Any]:
    """Return the fields that JSON can hold."""
    plain = {one.name: getattr(score, one.name) for one in fields(score) if one.name not in ARRAYS}
    return {**plain, "details": dict(score.details)}


def _table(run: PlannedRun) -> dict[str, Any]:
    return {
        "kind": run.kind, "task": run.task, "dataset": run.dataset, "condition": run.condition,
        "share": run.share, "seed": run.seed, "metadata": dict(run.metadata),
    }  # fmt: skip
