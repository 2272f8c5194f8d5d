"""Everything that the training of a task needs before its first update."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

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
from elmokit.tasks.runs.scoring import check_labels, score_model
from elmokit.tasks.runs.training import TaskTraining
from elmokit.tasks.tagging import check_tags_words
from elmokit.tasks.task import Task, TaskModel, TaskScore
from elmokit.training.checkpoints import Checkpoint
from elmokit.vectors.static_vectors import StaticVectors
from elmokit.vectors.vector_files import VectorsReference, read_vectors, read_vectors_of
from elmokit.version import __version__

log = logging.getLogger(__name__)

SCALED_BY = 32
"""Training examples that decide the initial γ; documents: one."""


@dataclass(frozen=True, kw_only=True)
class TaskFiles:
    """Files that the training of a task reads."""

    train: Path
    dev: Path
    test: Path | None = None
    vectors: Path | None = None
    """Static word vectors."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TaskExamples:
    """Examples of the files, and the labels to learn."""

    train: list[Any]
    """With those added in lower case."""
    num_given: int
    """Training examples in the file."""
    dev: list[Any]
    test: list[Any] | None
    labels: list[str]
    """Of the training set."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PreparedTask:
    """Examples, vectors and an untrained network: a training before its first update."""

    task: Task[Any]
    config: TaskRunConfig
    """With the task's defaults."""
    files: TaskFiles
    examples: TaskExamples
    bilm: TaskBiLM
    precision: str
    """Of the biLM."""
    static: StaticVectors | None
    """Of the words in training and dev set."""
    vectors: VectorsReference | None
    network: TaskModel
    maker: BatchMaker

    def metadata(self) -> dict[str, Any]:
        """Return the contents of ``task.json``, without the score."""
        bilm, vectors = self.bilm.reference, self.vectors
        return {
            "elmokit_version": __version__,
            "config": to_dict(self.config),
            "labels": self.examples.labels,
            "bilm": None if bilm is None else to_dict(bilm),
            "vectors": None if vectors is None else to_dict(vectors),
            "data": {
                "train": str(self.files.train), "dev": str(self.files.dev),
                "examples": self.examples.num_given,
            },
        }  # fmt: skip

    def origin(self) -> dict[str, Any]:
        """Return what a resumed training cannot change, besides its settings."""
        bilm, vectors = self.bilm.reference, self.vectors
        is_needed = self.config.inputs.sources.needs_bilm
        return {
            "train": file_sha256(self.files.train), "dev": file_sha256(self.files.dev),
            "precision": self.precision,
            "vectors": None if vectors is None else vectors.sha256,
            "bilm": None if bilm is None else bilm.what_is_read(is_needed=is_needed),
        }  # fmt: skip

    def build_training(
        self, *, seconds: float | None, checkpoint: Checkpoint | None
    ) -> TaskTraining:
        """Compute the layers of the examples, scale the mixtures, and return the training."""
        settings, keep = self.config.train, self.bilm.keep
        given = Examples(self.task, self.examples.train, None)
        read = choose_examples(given, share=settings.label_share, seed=settings.seed)
        training = Examples(self.task, self.examples.train, keep, read=read)
        dev = Examples(self.task, self.examples.dev, keep)
        self.network.inputs.set_scales(_first_batches(training, self.maker, sorted(read)))
        return TaskTraining(
            self.network, self.maker, training, dev, settings, seconds=seconds,
            checkpoint=checkpoint,
        )  # fmt: skip

    def score_test(self) -> TaskScore | None:
        """Score the network on the test set, if there is one."""
        test = self.examples.test
        if test is None:
            return None
        if self.static is not None and self.files.vectors is not None:
            later = read_vectors(self.files.vectors, only=set(self.task.words(test)))
            self.maker.static = self.static.extended(later)
            self.network.inputs.set_static(self.maker.static)
        return score_model(self.network, self.maker, Examples(self.task, test, self.bilm.keep))


def prepare_task(
    config: TaskRunConfig,
    files: TaskFiles,
    *,
    model: str | None,
    precision: str,
    device: str,
    cache_dir: Path | None,
    on_layers: OnLayers | None,
) -> PreparedTask:
    """Read the files, open the biLM and draw the weights of the network.

    Arguments and errors are those of `elmokit.tasks.runs.train_task.train_task`.
    """
    for path in (files.train, files.dev):  # hashed after they are read
        existing_file(path, what="task data", is_read_twice=True)
    task = find_task(config.task).in_units(config.units, config.columns)
    if config.train.lowercase_share:
        check_tags_words(task, wanted=LOWERCASE_SHARE)
    _check_vectors(config.inputs, files.vectors)
    given, config = config.inputs, config.resolved(with_static=files.vectors is not None)
    _warn_of_no_effect(given, config.inputs)
    chosen = pick_device(device)
    log.info("the task model computes on %s", chosen)
    bilm = TaskBiLM.open(
        config.inputs, model, precision=precision, finetune=config.train.finetune_bilm,
        device=chosen, cache_dir=cache_dir, on_layers=on_layers,
    )  # fmt: skip
    examples = _read(task, config, files, bilm)
    static = vectors = None
    if files.vectors is not None:
        vectors = VectorsReference.of(files.vectors)
        words = task.words([*examples.train, *examples.dev])
        static = read_vectors_of(files.vectors, words)
    with as_input_error():  # impossible widths
        network = build_network(task, config, examples.labels, bilm, static)
    network.reset_parameters(torch.Generator().manual_seed(config.train.seed))
    network.to(chosen)
    return PreparedTask(
        task=task, config=config, files=files, examples=examples, bilm=bilm,
        precision=precision, static=static, vectors=vectors, network=network,
        maker=BatchMaker(config.inputs, bilm.char_vocab, static, bilm=bilm.module, device=chosen),
    )  # fmt: skip


def _read(task: Task[Any], config: TaskRunConfig, files: TaskFiles, bilm: TaskBiLM) -> TaskExamples:
    """Read all examples; refuse those of another task, and labels that teach nothing."""
    tokenize = bilm.tokenizer.tokenize
    train = task.read(files.train, training=True, tokenize=tokenize)
    dev = task.read(files.dev, training=False, tokenize=tokenize)
    test = None
    if files.test is not None:
        test = task.read(files.test, training=False, tokenize=tokenize)
    for path, found in ((files.train, train), (files.dev, dev)):
        if not any(any(task.sentences(example)) for example in found):
            raise InputError(
                f"{path}: no example has a word; all texts are empty for the tokenizer. Is this "
                "the right file?"
            )
    num_given = len(train)
    train += lowercase_copies(
        task, train, share=config.train.lowercase_share, seed=config.train.seed
    )
    labels = task.labels(train)
    if task.labels_are_answers and len(labels) == 1:
        raise InputError(
            f"{files.train}: every example has the label {labels[0]!r}: there is nothing to learn."
        )
    check_labels(files.dev, task, labels, dev)
    if files.test is not None and test is not None:
        check_labels(files.test, task, labels, test)
    warn_of_units(
        files.train, task.words(train), config.units, bilm.tokenizer,
        has_bilm=bilm.reference is not None,
        option="--set units=morphemes" if "morphemes" in task.all_units else "",
    )  # fmt: skip
    return TaskExamples(train=train, num_given=num_given, dev=dev, test=test, labels=labels)


def _check_vectors(inputs: InputSettings, vectors: Path | None) -> None:
    if inputs.sources.needs_static and vectors is None:
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
