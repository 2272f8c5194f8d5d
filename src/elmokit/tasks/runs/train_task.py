"""`train_task`: labeled data in, the directory of a trained task out."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from elmokit.config import to_dict
from elmokit.errors import InputError, as_input_error
from elmokit.files.sources import existing_file, file_sha256
from elmokit.inference.device import pick_device
from elmokit.jobs.identity import Identity
from elmokit.jobs.job import Job, MetricsLog, StopRequest, open_job, stop_requests
from elmokit.tasks.inputs.layer_cache import OnLayers
from elmokit.tasks.inputs.settings import InputSettings
from elmokit.tasks.inputs.task_bilm import TaskBiLM
from elmokit.tasks.networks.encoder import build_network
from elmokit.tasks.registry import find_task
from elmokit.tasks.runs.examples import Examples, check_labels, choose_examples
from elmokit.tasks.runs.run_dir import CONFIG_FILE, TaskRunConfig, write_best
from elmokit.tasks.runs.training import EpochReport, OnStep, TaskStep, TaskTraining
from elmokit.tasks.task import warn_of_split_words
from elmokit.training.checkpoints import Checkpoint, load_checkpoint
from elmokit.vectors.vector_files import VectorsReference, read_vectors_of
from elmokit.version import __version__

log = logging.getLogger(__name__)

CHECKPOINT_SECONDS = 120.0
"""Longest time between two checkpoints; there is one at the start and after each epoch, too."""
SCALED_BY = 32  # training examples that decide the initial γ; documents: one

OnEpoch = Callable[[EpochReport], None]


@dataclass(frozen=True)
class TaskResult:
    """Result of a training."""

    run_dir: Path
    best: EpochReport
    num_epochs: int
    seconds: float  # training and scoring the dev set, without computing kept layers
    resumed_seconds: float = 0.0  # part of `seconds`, before the training was last resumed


def train_task(
    config: TaskRunConfig,
    train_path: Path,
    dev_path: Path,
    run_dir: Path,
    *,
    model: str | None = None,
    precision: str = "fp32",
    vectors: Path | None = None,
    device: str = "auto",
    cache_dir: Path | None = None,
    resume: bool = False,
    save_on_signals: bool = False,
    keep_static: bool = True,
    on_epoch: OnEpoch = lambda report: None,
    on_step: OnStep = lambda step: None,
    on_layers: OnLayers | None = None,
) -> TaskResult:
    """Train a task model on the layers of a frozen biLM.

    After every epoch ``run_dir`` has the best model so far, and a checkpoint. In fp32 on the CPU, a
    resumed run has bit for bit the scores of one that was never stopped.

    Args:
        config: What is trained.
        train_path: Training examples, in the task's format.
        dev_path: For early stopping.
        run_dir: A new directory, or one to resume.
        model: Directory or name of the biLM; none: the English one in the package.
        precision: Of the biLM.
        vectors: File of static word vectors; required by the ``static…`` conditions.
        device: Of the task model and the biLM; ``auto`` is CUDA if available.
        cache_dir: Where layers are kept.
        resume: Go on if ``run_dir`` holds this training.
        save_on_signals: On Ctrl-C, SIGTERM and SIGHUP, finish the update and write a checkpoint.
        keep_static: False leaves the static vectors out of ``run_dir``; they are then read from
            ``vectors`` whenever the run is used.
        on_epoch: Called after each epoch.
        on_step: Called after each update.
        on_layers: Called while layers are computed, with the number of sentences done and in total.

    Raises:
        FileExistsError: if ``run_dir`` has a run and ``resume`` is not set, or other files.
        ConfigError: if a resumed run has other settings or other data.
        InputError: if data and settings do not go together.
        Stopped: after a signal and its checkpoint.
        FloatingPointError: if the loss is not finite.
    """
    prepared = PreparedTask(
        config, train_path, dev_path, vectors, model=model, precision=precision, device=device,
        cache_dir=cache_dir, on_layers=on_layers, keep_static=keep_static,
    )  # fmt: skip
    identity = Identity(prepared.config, prepared.identity())
    with open_job(run_dir, "train", identity, resume=resume, result_name=CONFIG_FILE) as job:
        job.begin()
        training = prepared.build_training(load_checkpoint(job.pieces))
        resumed_seconds = training.state.progress.seconds
        with stop_requests(save_on_signals) as stop:
            best = _run(training, prepared, job, stop, on_step, on_epoch)
    return TaskResult(run_dir, best, training.state.epoch, training.seconds, resumed_seconds)


def _run(
    training: TaskTraining,
    prepared: "PreparedTask",
    job: Job,
    stop: StopRequest,
    on_step: OnStep,
    on_epoch: OnEpoch,
) -> EpochReport:
    """Train to the end with the best model, the log and checkpoints on disk; return the best."""
    saved_at = time.monotonic()
    scored_step = training.state.epoch * training.num_batches
    run_log = MetricsLog(job.directory, resume_step=scored_step)

    def save() -> None:
        nonlocal saved_at
        training.save(job.pieces)
        saved_at = time.monotonic()

    def stop_if_asked(epoch: int) -> None:
        if stop.signal_number is not None:
            if training.saved_step < training.state.progress.step:
                save()
            raise stop.stopped(f"in epoch {epoch}")

    def after_step(step: TaskStep) -> None:
        on_step(step)
        if time.monotonic() - saved_at >= CHECKPOINT_SECONDS:
            save()
        stop_if_asked(step.epoch)

    if training.state.progress.step == 0:
        save()  # before any model is written, which could not be resumed without it
    if training.state.best is not None:
        # On disk may be the model of an epoch after the checkpoint, which is now made again.
        prepared.write_model(training, job.directory)
    for report in training.run(after_step):
        if report.is_best:
            prepared.write_model(training, job.directory)
        run_log.write({
            "epoch": report.epoch, "step": training.state.progress.step, "loss": report.loss,
            "seconds": round(report.seconds, 2),
            "metric": report.dev.metric, "dev": report.dev.value, **report.dev.details,
        })  # fmt: skip
        save()
        on_epoch(report)
        stop_if_asked(report.epoch)
    assert training.state.best is not None  # there is an epoch
    return training.state.best


class PreparedTask:
    """Examples, vectors and an untrained network: a training before its first update."""

    def __init__(
        self,
        config: TaskRunConfig,
        train_path: Path,
        dev_path: Path,
        vectors_path: Path | None,
        *,
        model: str | None,
        precision: str,
        device: str,
        cache_dir: Path | None,
        on_layers: OnLayers | None,
        keep_static: bool,
    ) -> None:
        for path in (train_path, dev_path):  # hashed after they are read
            existing_file(path, what="task data", is_read_twice=True)
        self.train_path, self.dev_path, self.keep_static = train_path, dev_path, keep_static
        self.precision = precision
        self.task = task = find_task(config.task).in_units(config.units)
        wanted, config = config.inputs, config.resolved(with_static=vectors_path is not None)
        self.config = config
        _check_inputs(wanted, config.inputs, vectors_path)
        torch_device = pick_device(device)
        log.info("the task model computes on %s", torch_device)
        self.bilm = TaskBiLM.open(
            config.inputs, model, precision=precision, device=str(torch_device),
            cache_dir=cache_dir, on_layers=on_layers,
        )  # fmt: skip
        self._read_examples()
        self.vectors = static = None
        if vectors_path is not None:
            self.vectors = VectorsReference.of(vectors_path)
            static = read_vectors_of(vectors_path, task.words([*self.train, *self.dev]))
        with as_input_error():  # impossible widths
            self.network = build_network(task, config, self.labels, self.bilm, static)
        self.network.reset_parameters(torch.Generator().manual_seed(config.train.seed))
        self.network.to(torch_device)

    def _read_examples(self) -> None:
        """Read all examples; refuse those of another task, and labels that teach nothing."""
        task = self.task
        tokenize = self.bilm.tokenizer.tokenize
        self.train = task.read(self.train_path, training=True, tokenize=tokenize)
        self.dev = task.read(self.dev_path, training=False, tokenize=tokenize)
        for path, examples in ((self.train_path, self.train), (self.dev_path, self.dev)):
            if next(task.words(examples), None) is None:
                raise InputError(
                    f"{path}: no example has a word; all texts are empty for the tokenizer. Is "
                    "this the right file?"
                )
        self.labels = task.labels(self.train)
        if task.labels_are_answers and len(self.labels) == 1:
            raise InputError(
                f"{self.train_path}: every example has the label {self.labels[0]!r}: there is "
                "nothing to learn."
            )
        check_labels(self.dev_path, task, self.labels, self.dev)
        if task.units == "words":
            warn_of_split_words(self.train_path, task.words(self.train), self.bilm.tokenizer)

    def identity(self) -> dict[str, Any]:
        """Return what a resumed training cannot change, besides its settings."""
        bilm, vectors = self.bilm.reference, self.vectors
        is_needed = self.config.inputs.sources.needs_bilm
        return {
            "train": file_sha256(self.train_path), "dev": file_sha256(self.dev_path),
            "precision": self.precision,
            "vectors": None if vectors is None else vectors.sha256,
            "bilm": None if bilm is None else bilm.what_is_read(is_needed=is_needed),
        }  # fmt: skip

    def write_model(self, training: TaskTraining, run_dir: Path) -> None:
        assert training.state.best is not None
        dev, bilm, vectors = training.state.best.dev, self.bilm.reference, self.vectors
        metadata = {
            "elmokit_version": __version__,
            "config": to_dict(self.config),
            "labels": self.labels,
            "bilm": None if bilm is None else to_dict(bilm),
            "vectors": None if vectors is None else to_dict(vectors),
            "data": {
                "train": str(self.train_path), "dev": str(self.dev_path),
                "examples": len(self.train),
            },
            "dev": {"metric": dev.metric, "value": dev.value, **dev.details},
        }  # fmt: skip
        best = {name: tensor.cpu().numpy() for name, tensor in training.best_weights.items()}
        static = self.network.static  # of the words in training and dev set
        if static is not None and not self.keep_static:
            static = static.first(0)
        write_best(run_dir, metadata, self.network.arrays() | best, static)

    def build_training(self, checkpoint: Checkpoint | None) -> TaskTraining:
        """Compute the layers of the examples, scale the mixtures, and return the training."""
        settings, task, examples = self.config.train, self.task, self.train
        layers_of = self.bilm.layers_of(kept=True)
        chosen = choose_examples(task, examples, share=settings.label_share, seed=settings.seed)
        # In the order of the file, so that the layers of all are kept once for all seeds.
        places = {index: place for place, index in enumerate(sorted(chosen))}
        training = Examples(task, [examples[index] for index in places], layers_of)
        first = training.examples[: 1 if task.batched_by == "document" else SCALED_BY]
        self.network.inputs.set_scales(training.batches(self.network, first))
        return TaskTraining(
            self.network, training, Examples(task, self.dev, layers_of), settings,
            order=[places[index] for index in chosen], checkpoint=checkpoint,
        )  # fmt: skip


def _check_inputs(wanted: InputSettings, resolved: InputSettings, vectors: Path | None) -> None:
    reads_none = wanted.embeddings == "none"
    if reads_none if vectors is not None else wanted.sources.needs_static:
        needs = "reads no word vectors: leave out" if reads_none else "needs word vectors: give"
        raise InputError(f"embeddings={wanted.embeddings!r} {needs} --vectors.")
    for name, reason in (
        ("state", f"embeddings={wanted.embeddings} reads no layers"),
        ("static_scale", "there are no word vectors (--vectors)"),
    ):
        value = getattr(wanted, name)
        if value != getattr(resolved, name):
            log.warning("inputs.%s=%s has no effect: %s", name, value, reason)
