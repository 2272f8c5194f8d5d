"""`train_task`: labeled data in, the directory of a trained task out."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import elmokit
from elmokit.bilm.device import pick_device
from elmokit.config import to_dict
from elmokit.errors import InputError, as_input_error
from elmokit.files.hashing import file_sha256
from elmokit.files.sources import existing_file
from elmokit.tasks.inputs.settings import InputSettings
from elmokit.tasks.inputs.task_bilm import OnLayers, TaskBiLM
from elmokit.tasks.inputs.token_inputs import BatchMaker, TokenBatch
from elmokit.tasks.inputs.word_units import warn_of_units
from elmokit.tasks.registry import find_task
from elmokit.tasks.runs.config import TaskRunConfig, build_network
from elmokit.tasks.runs.examples import (
    LOWERCASE_SHARE,
    Examples,
    choose_examples,
    lowercase_copies,
)
from elmokit.tasks.runs.run_dir import write_best
from elmokit.tasks.runs.saved_training import OnEpoch, SavedTraining, open_run_dir
from elmokit.tasks.runs.scoring import check_labels, score_model
from elmokit.tasks.runs.training import EpochReport, OnStep, TaskTraining
from elmokit.tasks.tagging import check_tags_words
from elmokit.tasks.task import TaskScore
from elmokit.training.schedules import Limits
from elmokit.vectors.vector_files import VectorsReference, read_vectors, read_vectors_of

log = logging.getLogger(__name__)

SCALED_BY = 32
"""Training examples that decide the initial γ; documents: one."""


@dataclass(frozen=True)
class TaskResult:
    """Result of a training."""

    run_dir: Path
    best: EpochReport
    num_epochs: int
    seconds: float
    """Training and scoring the dev set, without computing kept layers."""
    is_complete: bool = True
    """False if ``minutes`` ended it before ``train.epochs`` and patience did."""
    test: TaskScore | None = None
    """Of the best epoch on the test set, if one was given and the training is complete."""


def train_task(
    config: TaskRunConfig,
    train_path: Path,
    dev_path: Path,
    run_dir: Path,
    *,
    model: str | None = None,
    precision: str = "fp32",
    vectors: Path | None = None,
    test_path: Path | None = None,
    device: str = "auto",
    cache_dir: Path | None = None,
    resume: bool = False,
    minutes: float | None = None,
    save_on_signals: bool = False,
    with_checkpoints: bool = True,
    keep_static: bool = True,
    on_epoch: OnEpoch = lambda report: None,
    on_step: OnStep = lambda step: None,
    on_layers: OnLayers | None = None,
) -> TaskResult:
    """Train a task model on the layers of a frozen biLM, or with ``train.finetune_bilm`` both.

    After every epoch ``run_dir`` has the best model so far, and a checkpoint. In fp32 on the CPU, a
    resumed run has bit for bit the scores of one that was never stopped.

    Args:
        config: What is trained.
        train_path: Training examples, in the task's format.
        dev_path: For early stopping.
        run_dir: A new directory, or one to resume. What a training left that was stopped in its
            first epoch is replaced.
        model: biLM directory; conditions without a biLM use only its tokenizer, if given.
        precision: Of the biLM.
        vectors: File of static word vectors, see `read_vectors`; required by the ``static…``
            conditions, refused by ``none``.
        test_path: Scored once, with the best epoch, when the training is complete; not part of the
            run, so a resumed one may be given another.
        device: Of the task model and the biLM; ``auto`` is CUDA if available. Kept layers stay on
            the CPU.
        cache_dir: Where layers are kept.
        resume: Continue from the last checkpoint in ``run_dir``.
        minutes: Limit of training and scoring, over all parts of a resumed run; the unfinished
            epoch is scored like the others.
        save_on_signals: On Ctrl-C, SIGTERM and SIGHUP, finish the update and write a checkpoint.
        with_checkpoints: False for a short training that is never resumed.
        keep_static: False leaves the static vectors out of ``run_dir``; they are then read from
            ``vectors`` whenever the run is used.
        on_epoch: Called after each epoch.
        on_step: Called after each update, and while the dev set is scored.
        on_layers: Called while layers are computed, with the number of sentences done and in total.

    Raises:
        FileExistsError: if ``run_dir`` has a model and ``resume`` is not set, or other files.
        ConfigError: if a resumed run has other settings or other data.
        Stopped: after a signal and its checkpoint.
        FileNotFoundError: if a file or the model is missing.
        FormatError: if the data is damaged.
        ValueError: if the condition lacks what it reads, or is given what it does not read; if the
            task cannot read layers where ``config`` says.
        InputError: if the training or dev set is standard input or a pipe; if the training set has
            a single label; if the dev or test set has none of those of the training set; if there
            are static vectors of none of the words; for a ``lowercase_share`` of a task that does
            not tag words.
        FloatingPointError: if the loss is not finite.
    """
    for path in (train_path, dev_path):  # hashed after they are read
        existing_file(path, what="task data", is_read_twice=True)
    task = find_task(config.task).in_units(config.units)
    Limits(minutes=minutes)
    if config.train.lowercase_share:
        check_tags_words(task, wanted=LOWERCASE_SHARE)
    _check_vectors(config.inputs, vectors)
    given, config = config.inputs, config.resolved(with_static=vectors is not None)
    _warn_of_no_effect(given, config.inputs)
    chosen = pick_device(device)
    log.info("the task model computes on %s", chosen)
    bilm = TaskBiLM.open(
        config.inputs, model, precision=precision, finetune=config.train.finetune_bilm,
        device=chosen, cache_dir=cache_dir, on_layers=on_layers,
    )  # fmt: skip
    tokenize = bilm.tokenizer.tokenize
    training = task.read(train_path, training=True, tokenize=tokenize)
    dev = task.read(dev_path, training=False, tokenize=tokenize)
    test = None
    if test_path is not None:
        test = task.read(test_path, training=False, tokenize=tokenize)
    num_given = len(training)
    training += lowercase_copies(
        task, training, share=config.train.lowercase_share, seed=config.train.seed
    )
    labels = task.labels(training)
    if task.labels_are_answers and len(labels) == 1:
        raise InputError(
            f"{train_path}: every example has the label {labels[0]!r}: there is nothing to learn."
        )
    check_labels(dev_path, task, labels, dev)
    if test_path is not None and test is not None:
        check_labels(test_path, task, labels, test)
    has_bilm = bilm.reference is not None
    warn_of_units(
        train_path, task.words(training), config.units, bilm.tokenizer, has_bilm=has_bilm,
        option="--set units=morphemes" if "morphemes" in task.all_units else "",
    )  # fmt: skip
    static = vectors_reference = None
    if vectors is not None:
        vectors_reference = VectorsReference.of(vectors)
        static = read_vectors_of(vectors, task.words([*training, *dev]))
    kept_static = static if static is None or keep_static else static.first(0)
    with as_input_error():  # impossible widths
        network = build_network(task, config, labels, bilm, static)
    network.reset_parameters(torch.Generator().manual_seed(config.train.seed))
    network.to(chosen)
    metadata = {
        "elmokit_version": elmokit.__version__,
        "config": to_dict(config),
        "labels": labels,
        "bilm": None if bilm.reference is None else to_dict(bilm.reference),
        "vectors": None if vectors_reference is None else to_dict(vectors_reference),
        "data": {"train": str(train_path), "dev": str(dev_path), "examples": num_given},
    }
    origin: dict[str, Any] = {
        "train": file_sha256(train_path), "dev": file_sha256(dev_path), "precision": precision,
        "vectors": None if vectors_reference is None else vectors_reference.sha256,
        "bilm": None if bilm.reference is None else bilm.reference.model_hash,
    }  # fmt: skip
    maker = BatchMaker(config.inputs, bilm.char_vocab, static, bilm=bilm.module, device=chosen)

    def write_epoch(report: EpochReport) -> None:
        found = report.dev
        score = {"metric": found.metric, "value": found.value, **found.details}
        write_best(run_dir, metadata | {"dev": score}, network, kept_static)

    with open_run_dir(run_dir, config, origin, resume=resume) as checkpoint:
        read = choose_examples(
            Examples(task, training, None), share=config.train.label_share, seed=config.train.seed
        )
        examples = (
            Examples(task, training, bilm.keep, read=read), Examples(task, dev, bilm.keep)
        )  # fmt: skip
        network.inputs.set_scales(_first_batches(examples[0], maker, sorted(read)))
        saved = SavedTraining(
            training=TaskTraining(
                network, maker, *examples, config.train,
                seconds=None if minutes is None else 60 * minutes, checkpoint=checkpoint,
            ),
            run_dir=run_dir, write_best=write_epoch, checkpoint=checkpoint,
            with_checkpoints=with_checkpoints, save_on_signals=save_on_signals,
            on_step=on_step, on_epoch=on_epoch,
        )  # fmt: skip
        best = saved.run()
    num_epochs = saved.training.epoch + bool(saved.training.losses)
    if best.dev.value == 0:
        log.warning(
            "%s on %s is 0 after every epoch (%d): no gold answer was found. If the file has any, "
            "train for more epochs, on more examples, or with another train.learning_rate.",
            best.dev.metric, dev_path, num_epochs,
        )  # fmt: skip
    seconds, is_complete = saved.training.seconds, saved.training.is_complete
    score = None
    if test is not None and is_complete:
        if static is not None and vectors is not None:
            later = read_vectors(vectors, only=set(task.words(test)))
            maker.static = static.extended(later)
            network.inputs.set_static(maker.static)
        score = score_model(network, maker, Examples(task, test, bilm.keep))
    return TaskResult(run_dir, best, num_epochs, seconds, is_complete, score)


def _check_vectors(inputs: InputSettings, vectors: Path | None) -> None:
    if inputs.needs_static and vectors is None:
        raise InputError(
            f"embeddings={inputs.embeddings!r} needs word vectors: give a file with --vectors."
        )
    if inputs.embeddings == "none" and vectors is not None:
        raise InputError(
            "embeddings='none' reads no word vectors: leave out --vectors, or take static."
        )


def _warn_of_no_effect(given: InputSettings, resolved: InputSettings) -> None:
    if given.state != resolved.state:
        log.warning(
            "inputs.state=%s has no effect: embeddings=%s reads no layers",
            given.state, given.embeddings,
        )  # fmt: skip
    if given.static_scale != resolved.static_scale:
        log.warning(
            "inputs.static_scale=%s has no effect without word vectors (--vectors)",
            given.static_scale,
        )  # fmt: skip


def _first_batches(
    examples: Examples, maker: BatchMaker, indices: Sequence[int]
) -> list[TokenBatch]:
    count = 1 if examples.task.batched_by == "document" else SCALED_BY
    return examples.batch(maker, indices[:count])
