"""A trained task as a directory: made by `train_task`, loaded as a `TaskRun`."""

import logging
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any

import torch

import elmokit
from elmokit.bilm.device import pick_device
from elmokit.config import from_dict, to_dict
from elmokit.errors import FormatError, InputError, as_input_error
from elmokit.files.hashing import file_sha256
from elmokit.tasks.inputs.settings import InputSettings
from elmokit.tasks.inputs.task_bilm import BiLMReference, OnLayers, TaskBiLM
from elmokit.tasks.inputs.token_inputs import BatchMaker, TokenBatch
from elmokit.tasks.inputs.word_units import warn_of_units
from elmokit.tasks.registry import find_task
from elmokit.tasks.runs.config import TaskRunConfig, build_network
from elmokit.tasks.runs.examples import Examples
from elmokit.tasks.runs.run_dir import (
    CONFIG_FILE,
    WEIGHTS_FILE,
    check_sizes,
    input_settings_of,
    read_metadata,
    read_static,
    read_weights,
    vectors_of,
    write_best,
)
from elmokit.tasks.runs.saved_training import OnEpoch, SavedTraining, open_run_dir
from elmokit.tasks.runs.scoring import missing_labels, predict, score_model
from elmokit.tasks.runs.training import EpochReport, OnStep, TaskTraining, choose_examples
from elmokit.tasks.task import Task, TaskModel, TaskScore
from elmokit.text.given_sentences import check_is_list, check_text
from elmokit.text.tokenizers.protocol import NormalizingTokenizer, Tokenizer
from elmokit.text.tokenizers.registry import TokenizerConfig, build_tokenizer, tokenizer_for_model
from elmokit.training.schedules import Limits
from elmokit.vectors.vector_files import LaterWords, VectorsReference, read_vectors
from elmokit.weights.locate import path_of

log = logging.getLogger(__name__)

LINES_TOGETHER = 256
"""Lines of raw text that are read and looked up together."""
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
    minutes: float | None = None,
    save_on_signals: bool = False,
    with_checkpoints: bool = True,
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
        vectors: File of static word vectors, see `read_vectors`; required by the ``static``
            condition, refused by ``none``.
        device: Of the task model and the biLM; ``auto`` is CUDA if available. Kept layers stay on
            the CPU.
        cache_dir: Where layers are kept.
        resume: Continue from the last checkpoint in ``run_dir``.
        minutes: Limit of training and scoring, over all parts of a resumed run; the unfinished
            epoch is scored like the others.
        save_on_signals: On Ctrl-C, SIGTERM and SIGHUP, finish the update and write a checkpoint.
        with_checkpoints: False for a short training that is never resumed.
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
        FloatingPointError: if the loss is not finite.
    """
    task = find_task(config.task).in_units(config.units)
    Limits(minutes=minutes)
    _check_vectors(config.inputs, vectors)
    config = config.resolved(with_static=vectors is not None)
    chosen, bilm = _open_bilm(config, model, precision, device, cache_dir, on_layers)
    tokenize = bilm.tokenizer.tokenize
    training = task.read(train_path, training=True, tokenize=tokenize)
    dev = task.read(dev_path, training=False, tokenize=tokenize)
    labels = task.labels(training)
    _warn_of_labels(dev_path, missing_labels(task, labels, dev))
    has_bilm = bilm.reference is not None
    warn_of_units(
        train_path, task.words(training), config.units, bilm.tokenizer, has_bilm=has_bilm,
        option="--set units=morphemes" if len(task.all_units) > 1 else "",
    )  # fmt: skip
    static = vectors_reference = None
    if vectors is not None:
        vectors_reference = VectorsReference.of(vectors)
        static = read_vectors(vectors, only=set(task.words([*training, *dev])))
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
        "data": {"train": str(train_path), "dev": str(dev_path), "examples": len(training)},
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
        write_best(run_dir, metadata | {"dev": score}, network, static)

    with open_run_dir(run_dir, config, origin, resume=resume) as checkpoint:
        read = choose_examples(Examples(task, training, None), config.train)
        examples = (
            Examples(task, training, bilm.keep, read=read), Examples(task, dev, bilm.keep)
        )  # fmt: skip
        network.inputs.scale_mixes(_first_batches(examples[0], maker, sorted(read)))
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
    is_complete = saved.training.is_complete
    return TaskResult(run_dir, best, num_epochs, saved.training.seconds, is_complete)


class TaskRun:
    """A trained task model with its inputs. Use `TaskRun.load`."""

    def __init__(
        self,
        task: Task[Any],
        network: TaskModel,
        labels: list[str],
        maker: BatchMaker,
        bilm: TaskBiLM,
        vectors: VectorsReference | None,
    ) -> None:
        self.task, self._network, self.labels = task, network, labels
        self._maker, self._bilm = maker, bilm
        self._later_words = None if vectors is None else LaterWords(vectors)
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the lock, which is made again."""
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.Lock())

    def __repr__(self) -> str:
        reference = self._bilm.reference
        reads = "no biLM"
        if reference is not None:
            reads = f"{self._maker.settings.embeddings} of {reference.path}, {reference.precision}"
        return (
            f"TaskRun({self.task.name}: {len(self.labels)} labels, {reads}, "
            f"tokenizer {self._bilm.tokenizer.name})"
        )

    @classmethod
    def load(
        cls,
        run_dir: str | PathLike[str],
        *,
        model: str | None = None,
        device: str = "auto",
        cache_dir: str | PathLike[str] | None = None,
    ) -> "TaskRun":
        """Load a run directory that `train_task` wrote.

        ``model`` is the biLM's directory if it has moved; ``cache_dir`` is where layers are kept.

        Raises:
            FileNotFoundError: if there is no such run, or its biLM is missing.
            FormatError: if it is damaged, has no weights, or the biLM is another one.
        """
        run_dir = Path(run_dir).expanduser()
        cache_dir = None if cache_dir is None else Path(cache_dir)
        metadata = read_metadata(run_dir)
        config = from_dict(TaskRunConfig, metadata["config"], source=str(run_dir / CONFIG_FILE))
        task = find_task(config.task).in_units(config.units)
        vectors = vectors_of(metadata, run_dir)
        config = replace(config, inputs=input_settings_of(metadata, run_dir))
        config = config.resolved(with_static=vectors is not None)
        reference = metadata["bilm"] and from_dict(BiLMReference, metadata["bilm"])
        path = model or (path_of(reference.path) if reference else None)
        precision = reference.precision if reference else "fp32"
        chosen, bilm = _open_bilm(config, path, precision, device, cache_dir)
        if reference and bilm.reference and bilm.reference.model_hash != reference.model_hash:
            raise FormatError(
                f"{path} is not the biLM that {run_dir} was trained with: the hash of its weights "
                f"is {bilm.reference.model_hash[:12]}, not {reference.model_hash[:12]}. Give the "
                "right one with --model."
            )
        tensors = read_weights(run_dir)
        check_sizes(metadata["labels"], config.hidden_dims, tensors, run_dir)
        static = read_static(run_dir, tensors)
        try:
            network = build_network(task, config, metadata["labels"], bilm, static)
            network.load_state_dict(tensors)
        except (RuntimeError, ValueError) as error:
            raise FormatError(
                f"{run_dir / WEIGHTS_FILE} does not fit {CONFIG_FILE}: {error}"
            ) from error
        network.eval().to(chosen)
        maker = BatchMaker(config.inputs, bilm.char_vocab, static, bilm=bilm.module, device=chosen)
        return cls(task, network, metadata["labels"], maker, bilm, vectors)

    def evaluate(self, path: Path) -> TaskScore:
        """Score the predictions for a file with gold answers.

        Raises:
            FileNotFoundError: if there is no such file.
            FormatError: if it is damaged.
        """
        examples = self.task.read(path, training=False, tokenize=self._bilm.tokenizer.tokenize)
        _warn_of_labels(path, missing_labels(self.task, self.labels, examples))
        self._look_up(examples)
        held = Examples(self.task, examples, self._bilm.keep)
        return score_model(self._network, self._maker, held)

    def predict_json(
        self, texts: Iterable[str | Sequence[Any]], *, tokenizer: str | None = None
    ) -> Iterator[dict[str, Any]]:
        """Yield what `Task.as_json` returns for each text, with probabilities; see `predict`."""
        for example, (answer, probs) in self._predict(texts, tokenizer, with_probs=True):
            yield self.task.as_json(example, answer, probs)

    def predict(
        self, texts: Iterable[str | Sequence[Any]], *, tokenizer: str | None = None
    ) -> Iterator[tuple[Any, Any]]:
        """Yield example and prediction for each text.

        Except for new static vectors, memory does not depend on the number of texts.

        Args:
            texts: A string is split by the biLM's tokenizer, a list is taken as words. An example
                of several texts is a string with tabs or a list of texts, a document also a list of
                sentences.
            tokenizer: Splits strings instead of the biLM's own, with a warning if it differs.

        Raises:
            TypeError: at once if ``texts`` is one string; for a text that is neither string nor
                list of strings.
            InputError: for a text that the task cannot read (two texts, a marked predicate), with
                its number.
        """
        return self._predict(texts, tokenizer, with_probs=False)

    def _predict(
        self, texts: Iterable[str | Sequence[Any]], tokenizer: str | None, *, with_probs: bool
    ) -> Iterator[tuple[Any, Any]]:
        check_is_list(texts, name="texts")
        own = self._bilm.tokenizer
        if tokenizer is not None:
            trained_with = TokenizerConfig(name=own.name, version=own.version)
            other = build_tokenizer(tokenizer_for_model(trained_with, tokenizer))
            own = NormalizingTokenizer(other, self._bilm.char_vocab.config.normalization)
        return self._predictions(texts, own, with_probs=with_probs)

    def _predictions(
        self, texts: Iterable[str | Sequence[Any]], tokenizer: Tokenizer, *, with_probs: bool
    ) -> Iterator[tuple[Any, Any]]:
        numbered = enumerate(texts, 1)
        together = 1 if self.task.batched_by == "document" else LINES_TOGETHER
        while block := list(islice(numbered, LINES_TOGETHER)):
            examples = [self._example(number, text, tokenizer) for number, text in block]
            self._look_up(examples)
            for start in range(0, len(examples), together):
                some = examples[start : start + together]
                held = Examples(self.task, some, self._bilm.compute)
                answers = predict(self._network, self._maker, held, with_probs=with_probs)
                yield from zip(some, answers, strict=True)

    def _example(self, number: int, text: str | Sequence[Any], tokenizer: Tokenizer) -> Any:
        try:
            if isinstance(text, str):
                check_text(text, where="it")
                return self.task.from_text(text, tokenizer)
            return self.task.from_words(text, tokenizer.tokenize)
        except (ValueError, TypeError) as error:
            kind = TypeError if isinstance(error, TypeError) else InputError
            raise kind(f"Text {number}: {error}") from error

    def _look_up(self, examples: Sequence[Any]) -> None:
        """Add static vectors of words that are not in the training data."""
        if self._later_words is None:
            return
        words = dict.fromkeys(self.task.words(examples))
        with self._lock:
            static = self._maker.static
            if static is None:
                return
            found = self._later_words.find([word for word in words if static.id_of(word) == 1])
            if found is not None and found.words:
                extended = static.extended(found)  # ids of earlier words stay
                self._network.inputs.set_static(extended)
                self._maker.static = extended


def _open_bilm(
    config: TaskRunConfig,
    model: str | None,
    precision: str,
    device: str,
    cache_dir: Path | None,
    on_layers: OnLayers | None = None,
) -> tuple[torch.device, TaskBiLM]:
    chosen = pick_device(device)
    log.info("the task model computes on %s", chosen)
    return chosen, TaskBiLM.open(
        config.inputs, model, precision=precision, finetune=config.train.finetune_bilm,
        device=chosen, cache_dir=cache_dir, on_layers=on_layers,
    )  # fmt: skip


def _check_vectors(inputs: InputSettings, vectors: Path | None) -> None:
    if inputs.embeddings == "static" and vectors is None:
        raise InputError("embeddings='static' needs word vectors: give a file with --vectors.")
    if inputs.embeddings == "none" and vectors is not None:
        raise InputError(
            "embeddings='none' reads no word vectors: leave out --vectors, or take static."
        )


def _warn_of_labels(path: Path, unknown: list[str]) -> None:
    if unknown:
        log.warning(
            "%s has labels that the training set lacks (%s%s): they count as wrong",
            path, ", ".join(unknown[:5]), ", …" if len(unknown) > 5 else "",
        )  # fmt: skip


def _first_batches(
    examples: Examples, maker: BatchMaker, indices: Sequence[int]
) -> list[TokenBatch]:
    count = 1 if examples.task.batched_by == "document" else SCALED_BY
    return examples.batch(maker, indices[:count])
