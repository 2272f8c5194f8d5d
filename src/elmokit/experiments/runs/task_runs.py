"""Executes task runs: divides the data, trains, scores the dev set once, keeps the model.

A run that was stopped goes on from its last checkpoint.
"""

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from elmokit.config import from_dict
from elmokit.experiments.plan import ID_LENGTH, PlannedRun
from elmokit.experiments.runs.provenance import provenance
from elmokit.experiments.runs.run_queue import CheckTime
from elmokit.experiments.runs.store import FileScore, RunResult
from elmokit.experiments.samples import RunFiles, write_run_files
from elmokit.files.temporary import remove_whole
from elmokit.probes.data import SplitFiles
from elmokit.probes.layer_weights import MixWeights, read_layer_weights
from elmokit.tasks.runs.config import TaskRunConfig
from elmokit.tasks.runs.run_dir import read_metadata
from elmokit.tasks.runs.train_task import train_task
from elmokit.tasks.runs.training import EpochReport
from elmokit.training.checkpoints import latest_checkpoint
from elmokit.training.metrics_log import METRICS_FILE, read_log
from elmokit.training.run_dir import CHECKPOINTS

OnStatus = Callable[[str], None]


@dataclass(kw_only=True)
class TaskRuns:
    """Trains task models.

    The held-out part of the training set chooses the epoch and ends the training; the dev set is
    scored once, with the weights of that epoch.
    """

    files: Mapping[str, SplitFiles]
    """The data sets, by folder."""
    work_dir: Path
    """Folder for samples and unfinished trainings."""
    keep_model: Callable[[PlannedRun, Path], None]
    """Keeps the trained model of a run."""
    model: Path
    """biLM directory."""
    vectors: Path | None = None
    """Static word vectors, an input in every condition; kept models do not repeat them."""
    device: str = "auto"
    """Device for task models, see `train_task`."""
    cache_dir: Path | None = None
    """Cache for layers."""
    on_status: OnStatus = lambda text: None
    """Called with the current activity."""
    _data: dict[str, RunFiles] = field(default_factory=dict, init=False)

    def __call__(self, run: PlannedRun, check_time: CheckTime) -> RunResult:
        """Train and score, or go on where this run was stopped; the run must be locked.

        `OutOfTime` may come from ``check_time``, between epochs or sentences.

        Raises:
            FloatingPointError: if the loss is not finite.
            FormatError: if data, or the checkpoint to go on from, is damaged.
        """
        run_dir = self.work_dir / "training" / run.id
        run_dir.parent.mkdir(parents=True, exist_ok=True)
        try:
            result = self._train(run, run_dir, check_time)
        except FloatingPointError:
            if run_dir.exists():
                remove_whole(run_dir)  # it would diverge again
            raise
        except BaseException as error:
            _say_where_it_goes_on(error, run_dir)
            raise
        remove_whole(run_dir)
        return result

    def _train(self, run: PlannedRun, run_dir: Path, check_time: CheckTime) -> RunResult:
        started = time.monotonic()
        config = from_dict(TaskRunConfig, run.metadata["config"], source=run.describe())

        def on_epoch(report: EpochReport) -> None:
            self.on_status(f"epoch {report.epoch}, held-out part {report.dev.value:.2f}")
            check_time()

        def on_layers(done: int, total: int) -> None:
            self.on_status(f"layers of {done:,} of {total:,} sentences")
            check_time()

        data = self._read_data(run)
        trained = train_task(
            config, data.parts.train, data.parts.held_out, run_dir, test_path=data.dev,
            model=str(self.model), vectors=self.vectors, device=self.device,
            cache_dir=self.cache_dir, keep_static=False,
            resume=latest_checkpoint(run_dir / CHECKPOINTS) is not None,
            on_epoch=on_epoch, on_layers=on_layers,
        )  # fmt: skip
        assert trained.test is not None  # the training is complete
        num_examples = read_metadata(run_dir)["data"]["examples"]
        result = RunResult(
            **vars(FileScore.of(trained.test)),
            num_examples=max(1, round(run.share * num_examples)),
            epochs=tuple(
                {"epoch": row["epoch"], "loss": row["loss"], "held_out": row["dev"]}
                for row in read_log(run_dir / METRICS_FILE)
            ),
            best_epoch=trained.best.epoch, seconds=trained.seconds,
            wall_seconds=trained.resumed_seconds + time.monotonic() - started,
            layer_weights=_layer_weights(run_dir, config), made=provenance(self.device),
        )  # fmt: skip
        self.keep_model(run, run_dir)  # before the result: a stored run has its model
        return result

    def _read_data(self, run: PlannedRun) -> RunFiles:
        """Return the files that a run reads, made once per process."""
        if run.dataset not in self._data:
            data: Mapping[str, Any] = run.metadata["data"]
            source = self.files[run.dataset]
            settings = json.dumps({key: data[key] for key in sorted(data)})
            name = f"{run.dataset}-{hashlib.sha256(settings.encode()).hexdigest()[:ID_LENGTH]}"
            directory = self.work_dir / "samples" / name
            self._data[run.dataset] = write_run_files(
                source, directory, task=run.task, limit=data["max_train"], subset=data["subset"],
                held_out=tuple(data["held_out"]),
            )  # fmt: skip
        return self._data[run.dataset]


def _say_where_it_goes_on(error: BaseException, run_dir: Path) -> None:
    """Name the last checkpoint, instead of how the command `train` would go on."""
    notes = getattr(error, "__notes__", [])
    notes[:] = [note for note in notes if str(run_dir) not in note]
    checkpoint = latest_checkpoint(run_dir / CHECKPOINTS)
    if checkpoint is not None:
        error.add_note(f"The unfinished run goes on from {checkpoint}.")


def _layer_weights(run_dir: Path, config: TaskRunConfig) -> tuple[MixWeights, ...]:
    if config.inputs.sources.layers != "mix":
        return ()
    return read_layer_weights(run_dir).mixes
