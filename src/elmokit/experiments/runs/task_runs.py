"""Executes task runs: samples the data, trains, returns the scores, discards the weights."""

import json
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from elmokit.config import from_dict
from elmokit.experiments.plan import PlannedRun
from elmokit.experiments.runs.provenance import provenance
from elmokit.experiments.runs.run_queue import CheckTime, OutOfTime
from elmokit.experiments.runs.store import RunResult
from elmokit.experiments.samples import sample_file
from elmokit.probes.data import SplitFiles
from elmokit.probes.layer_weights import LEARNING_CONDITIONS, MixWeights, read_layer_weights
from elmokit.tasks.runs.config import TaskRunConfig
from elmokit.tasks.runs.run_dir import read_metadata
from elmokit.tasks.runs.train_task import train_task
from elmokit.tasks.runs.training import EpochReport

OnStatus = Callable[[str], None]


@dataclass(kw_only=True)
class TaskRuns:
    """Trains task models."""

    files: Mapping[str, SplitFiles]
    """The data sets, by folder."""
    work_dir: Path
    """Folder for samples and unfinished models."""
    model: Path
    """biLM directory."""
    vectors: Path | None = None
    """Static word vectors, an input in every condition."""
    device: str = "auto"
    """Device for task models, see `train_task`."""
    cache_dir: Path | None = None
    """Cache for layers."""
    models_dir: Path | None = None
    """Folder for trained models; none: discard them."""
    on_status: OnStatus = lambda text: None
    """Called with the current activity."""
    _samples: dict[tuple[str, str], Path] = field(default_factory=dict, init=False)

    def __call__(self, run: PlannedRun, check_time: CheckTime) -> RunResult:
        """Train and score; `OutOfTime` may come from ``check_time``, between epochs or sentences.

        Raises:
            FloatingPointError: if the loss is not finite.
        """
        started = time.monotonic()
        config = from_dict(TaskRunConfig, run.metadata["config"], source=run.describe())
        own_dir = self._own_dir(run)
        run_dir = own_dir / "model"
        reports: list[EpochReport] = []

        def on_epoch(report: EpochReport) -> None:
            reports.append(report)
            self.on_status(f"epoch {report.epoch}, dev {report.dev.value:.2f}")
            check_time()

        def on_layers(done: int, total: int) -> None:
            self.on_status(f"layers of {done:,} of {total:,} sentences")
            check_time()

        try:
            trained = train_task(
                config, self._sample(run, "train"), self._sample(run, "dev"), run_dir,
                model=str(self.model), vectors=self.vectors, device=self.device,
                cache_dir=self.cache_dir, with_checkpoints=False,
                on_epoch=on_epoch, on_layers=on_layers,
            )  # fmt: skip
            num_examples = read_metadata(run_dir)["data"]["examples"]
            dev = trained.best.dev
            result = RunResult(
                metric=dev.metric, value=dev.value, details=dict(dev.details), counts=dev.counts,
                num_examples=max(1, round(run.share * num_examples)),
                epochs=tuple(
                    {"epoch": one.epoch, "loss": one.loss, "dev": one.dev.value} for one in reports
                ),
                best_epoch=trained.best.epoch, seconds=trained.seconds,
                wall_seconds=time.monotonic() - started,
                layer_weights=_layer_weights(run_dir, config), made=provenance(),
            )  # fmt: skip
            if self.models_dir is not None:
                self._keep(run, run_dir)
            shutil.rmtree(own_dir, ignore_errors=True)
            return result
        except (OutOfTime, FloatingPointError):
            shutil.rmtree(own_dir, ignore_errors=True)
            raise
        except BaseException:  # keep a model trained so far: the message mentions it
            with suppress(OSError):
                own_dir.rmdir()
            raise

    def _own_dir(self, run: PlannedRun) -> Path:
        """Make a directory for this process; another one may train the same run."""
        parent = self.work_dir / "training"
        parent.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=f"{run.id}-", dir=parent))

    def _keep(self, run: PlannedRun, run_dir: Path) -> None:
        assert self.models_dir is not None
        self.models_dir.mkdir(parents=True, exist_ok=True)
        target = self.models_dir / run.id
        shutil.rmtree(target, ignore_errors=True)
        shutil.move(run_dir, target)

    def _sample(self, run: PlannedRun, split: str) -> Path:
        """Return the file of a split, sampled once per process."""
        key = run.dataset, split
        if key not in self._samples:
            data: Mapping[str, Any] = run.metadata["data"]
            limit, subset = data[f"max_{split}"], data["subset"]
            name = f"{run.dataset}-{data[split][:12]}-{json.dumps(limit)}-{subset}"
            source: Path = getattr(self.files[run.dataset], split)
            self._samples[key] = sample_file(
                source, self.work_dir / "samples" / name, task=run.task, limit=limit, subset=subset
            )
        return self._samples[key]


def _layer_weights(run_dir: Path, config: TaskRunConfig) -> tuple[MixWeights, ...]:
    if config.inputs.embeddings not in LEARNING_CONDITIONS:
        return ()
    return read_layer_weights(run_dir).mixes
