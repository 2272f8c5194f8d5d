"""Executes task runs: divides the data, trains, scores the dev set once, keeps the model.

The training of a run that was stopped is resumed from its last checkpoint.
"""

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from elmokit.config import from_dict
from elmokit.errors import FormatError
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
    """Folder for samples."""
    training_dir: Callable[[PlannedRun], Path]
    """Returns where a run is trained; what is there is resumed, and never removed here."""
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
        """Train, from the beginning or a checkpoint, and score; the run must be locked.

        `OutOfTime` may come from ``check_time``, between epochs or sentences.

        Raises:
            FloatingPointError: if the loss is not finite.
            FormatError: if a file of data or of the resumed training is damaged.
        """
        run_dir = self.training_dir(run)
        run_dir.parent.mkdir(parents=True, exist_ok=True)
        try:
            return self._train(run, run_dir, check_time)
        except BaseException as error:
            _name_checkpoint(error, run_dir)
            raise

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
        has_checkpoint = latest_checkpoint(run_dir / CHECKPOINTS) is not None
        if run_dir.exists() and not has_checkpoint:
            remove_whole(run_dir)
        trained = train_task(
            config, data.parts.train, data.parts.held_out, run_dir, test_path=data.dev,
            model=str(self.model), vectors=self.vectors, device=self.device,
            cache_dir=self.cache_dir, keep_static=False,
            resume=has_checkpoint, on_epoch=on_epoch, on_layers=on_layers,
        )  # fmt: skip
        assert trained.test is not None  # the training is complete
        num_examples = read_metadata(run_dir)["data"]["examples"]
        result = RunResult(
            **vars(FileScore.of(trained.test)),
            num_examples=max(1, round(run.share * num_examples)),
            epochs=_epochs(run_dir, trained.num_epochs),
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


def _name_checkpoint(error: BaseException, run_dir: Path) -> None:
    """Replace notes on how the command `train` would resume the training."""
    notes = getattr(error, "__notes__", [])
    others = [note for note in notes if str(run_dir) not in note]
    checkpoint = latest_checkpoint(run_dir / CHECKPOINTS)
    if len(others) < len(notes) and checkpoint is not None:
        notes[:] = [*others, f"The unfinished training will be resumed from {checkpoint}."]


def _epochs(run_dir: Path, num_epochs: int) -> tuple[dict[str, float], ...]:
    path = run_dir / METRICS_FILE
    rows = read_log(path)
    if [row.get("epoch") for row in rows] != list(range(1, num_epochs + 1)):
        raise FormatError(
            f"{path} does not list every epoch (1 to {num_epochs}) once. Remove {run_dir} to train "
            "the run again."
        )
    return tuple({"epoch": r["epoch"], "loss": r["loss"], "held_out": r["dev"]} for r in rows)


def _layer_weights(run_dir: Path, config: TaskRunConfig) -> tuple[MixWeights, ...]:
    if config.inputs.sources.layers != "mix":
        return ()
    return read_layer_weights(run_dir).mixes
