"""Finished runs on disk: a directory each, which is there whole or not at all."""

import json
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from elmokit.errors import FormatError
from elmokit.experiments.plan import PlannedRun
from elmokit.files.atomic import atomic_directory, atomic_file
from elmokit.probes.layer_weights import MixWeights

RESULT_FILE, COUNTS_FILE = "result.json", "counts.npz"
DIVERGED_ENDING = ".diverged.json"


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """What a run came to."""

    metric: str
    value: float
    """The main number of the dev set, in percent."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """Further numbers, by name."""
    num_examples: int
    """That were trained on."""
    epochs: tuple[Mapping[str, float], ...] = ()
    """``epoch``, ``loss``, ``dev`` of each."""
    best_epoch: int = 0
    seconds: float
    """Of training and of scoring the dev set."""
    wall_seconds: float = 0.0
    """The same with reading, and with the biLM's layers where they were not yet kept."""
    layer_weights: tuple[MixWeights, ...] = ()
    """What a task made of the layers, at each position of use."""
    made: Mapping[str, str] = field(default_factory=dict)
    """When, on what machine, with what versions."""
    counts: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    """Per dev example (examples, k), from which the main number follows."""


class RunStore:
    """Results by the id of their run.

    Args:
        directory: Shared by experiments; made when the first result is written.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def path(self, run: PlannedRun) -> Path:
        """Return where a run is, or will be."""
        return self.directory / run.id

    def __contains__(self, run: PlannedRun) -> bool:
        return (self.path(run) / RESULT_FILE).is_file()

    def is_settled(self, run: PlannedRun) -> bool:
        """Return whether a run has a result or has diverged: it is not made again."""
        return run in self or self._divergence_path(run).is_file()

    def divergence(self, run: PlannedRun) -> str | None:
        """Return what a run said that diverged, or none if it did not.

        Raises:
            FormatError: if that is damaged.
        """
        path = self._divergence_path(run)
        if run in self or not path.is_file():
            return None
        try:
            message = json.loads(path.read_text(encoding="utf-8"))["message"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise FormatError(
                f"{path} is damaged: {error}. Remove that file; the run is made anew then."
            ) from error
        return f"diverged: {message}"

    def write_divergence(self, run: PlannedRun, message: str) -> None:
        """Keep that a run diverged.

        Raises:
            OSError: if there is no room on disk.
        """
        table = {"run": _table(run), "message": message}
        with atomic_file(self._divergence_path(run)) as temp_path:
            temp_path.write_text(
                json.dumps(table, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
            )

    def _divergence_path(self, run: PlannedRun) -> Path:
        return self.directory / f"{run.id}{DIVERGED_ENDING}"

    def read(self, run: PlannedRun) -> RunResult | None:
        """Return the result of a run, or none if it is not there.

        Raises:
            FormatError: if it is damaged.
        """
        if run not in self:
            return None
        directory = self.path(run)
        try:
            table = json.loads((directory / RESULT_FILE).read_text(encoding="utf-8"))
            result = dict(table["result"])
            result["epochs"] = tuple(result["epochs"])
            result["layer_weights"] = tuple(
                MixWeights(**{**one, "weights": tuple(one["weights"])})
                for one in result["layer_weights"]
            )
            with np.load(directory / COUNTS_FILE) as stored:
                result["counts"] = stored["counts"]
            return RunResult(**result)
        except (OSError, ValueError, KeyError, TypeError, EOFError) as error:
            raise FormatError(
                f"The run kept in {directory} is damaged: {error}. Remove that directory; the run "
                "is made anew then."
            ) from error

    def write(self, run: PlannedRun, result: RunResult) -> None:
        """Keep a result; one that another process has written meanwhile stays.

        Raises:
            OSError: if there is no room on disk.
        """
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
        if run in self:
            return
        self.directory.mkdir(parents=True, exist_ok=True)
        # written under a name of its own: another process may write the same run
        with tempfile.TemporaryDirectory(prefix=f".{run.id}-", dir=self.directory) as own:
            with atomic_directory(Path(own) / run.id) as temp_path:
                text = json.dumps(table, indent=1, ensure_ascii=False)
                (temp_path / RESULT_FILE).write_text(text + "\n", encoding="utf-8")
                np.savez_compressed(temp_path / COUNTS_FILE, counts=result.counts)
            self._put(run, Path(own) / run.id)

    def _put(self, run: PlannedRun, written: Path) -> None:
        if run not in self:  # what stands there lacks its result
            shutil.rmtree(self.path(run), ignore_errors=True)
        try:
            written.rename(self.path(run))
        except OSError:
            if run not in self:
                raise


def _table(run: PlannedRun) -> dict[str, Any]:
    return {
        "kind": run.kind, "task": run.task, "dataset": run.dataset, "condition": run.condition,
        "share": run.share, "seed": run.seed, "facts": dict(run.facts),
    }  # fmt: skip
