"""A trained task as a directory: made by `train_task`, loaded as a `TaskRun`.

``task.json`` is the resolved configuration with the labels and the biLM that was read,
``model.safetensors`` the task model, ``metrics.jsonl`` a row an epoch, ``vectors.txt`` the words of
the static vectors, whose values are among the weights. The biLM itself stays where it is.
"""

import json
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

import elmokit
from elmokit.atomic import whole_directory
from elmokit.config import from_dict, to_dict
from elmokit.embed.embedder import Embedder
from elmokit.errors import FormatError, InputError, at_the_door
from elmokit.tasks.base import Task, TaskModel, TaskScore
from elmokit.tasks.inputs import BatchMaker, InputsConfig, TokenInputs
from elmokit.tasks.layer_cache import Sentence, SentenceLayers, keep_layers
from elmokit.tasks.pair_classifier import NliTask
from elmokit.tasks.role_labeler import SrlTask
from elmokit.tasks.static_vectors import StaticVectors, read_text_vectors
from elmokit.tasks.tagger import NerTask, PosTask
from elmokit.tasks.text_classifier import SentimentTask
from elmokit.tasks.training import (
    EpochReport,
    Examples,
    TaskTrainConfig,
    missing_labels,
    predict,
    score_model,
    train_model,
)
from elmokit.text.char_vocab import CharVocab
from elmokit.text.tokenizers import build_tokenizer
from elmokit.weights.locate import find_model
from elmokit.weights.model_dir import load_model

log = logging.getLogger(__name__)

TASKS: dict[str, Task[Any]] = {
    task.name: task for task in (PosTask(), NerTask(), SrlTask(), SentimentTask(), NliTask())
}
"""By the name that a user types."""
CONFIG_FILE, WEIGHTS_FILE, METRICS_FILE, WORDS_FILE = (
    "task.json", "model.safetensors", "metrics.jsonl", "vectors.txt",
)  # fmt: skip
RANDOM_SEED = 0
"""Of the biLM that was never trained."""
OnEpoch = Callable[[EpochReport], None]


@dataclass(frozen=True, kw_only=True)
class BiLMReference:
    """The biLM that a task model reads."""

    path: str
    """Its model directory."""
    model_hash: str
    """Of the weights that were read."""
    precision: str = "fp32"
    """Arithmetic of its layers."""


@dataclass(frozen=True, kw_only=True)
class TaskRunConfig:
    """Everything that decides a task run."""

    task: str
    """One of `TASKS`."""
    hidden_dims: tuple[int, ...] = ()
    """Widths of the recurrent layers; none: the task's own."""
    inputs: InputsConfig = field(default_factory=InputsConfig)
    """What is read at each word."""
    train: TaskTrainConfig = field(default_factory=TaskTrainConfig)
    """How the model is trained."""


@dataclass(frozen=True)
class TaskResult:
    """How a training ended."""

    run_dir: Path
    best: EpochReport
    num_epochs: int
    seconds: float


def find_task(name: str) -> Task[Any]:
    """Return the task of this name.

    Raises:
        ValueError: if there is none.
    """
    if name not in TASKS:
        raise InputError(f"There is no task {name!r}; choose one of {', '.join(TASKS)}.")
    return TASKS[name]


def find_split(data: Path, split: str) -> Path:
    """Return the file of a data directory whose name says that it is this split.

    Raises:
        FileNotFoundError: if there is none, or the directory is missing.
        ValueError: if there are several.
    """
    if not data.is_dir():
        raise FileNotFoundError(
            f"There is no directory {data}. Give the directory with the files of the task "
            "(train… and dev…), or each file with --train and --dev."
        )
    found = sorted(path for path in data.iterdir() if split in path.name.lower())
    if len(found) > 1:
        names = ", ".join(path.name for path in found)
        raise InputError(f"{data} has several files for {split!r}: {names}. Name one of them.")
    if not found:
        raise FileNotFoundError(f"{data} has no file with {split!r} in its name.")
    return found[0]


def train_task(
    config: TaskRunConfig,
    train_path: Path,
    dev_path: Path,
    run_dir: Path,
    *,
    model: str | None = None,
    precision: str = "fp32",
    vectors: Path | None = None,
    cache_dir: Path | None = None,
    on_epoch: OnEpoch | None = None,
    on_layers: Callable[[int, int], None] | None = None,
) -> TaskResult:
    """Train a task model on frozen biLM layers and write it to ``run_dir``.

    Args:
        config: What is trained.
        train_path: Training examples, in the task's format.
        dev_path: For early stopping.
        run_dir: A new directory.
        model: biLM directory; arms without a biLM take only its tokenizer, if it is given.
        precision: Of the biLM.
        vectors: Static word vectors in text form; the ``static`` arm needs them.
        cache_dir: Where layers are kept.
        on_epoch: Called after each epoch.
        on_layers: Called while layers are computed, with sentences done and their number.

    Raises:
        FileExistsError: if ``run_dir`` exists.
        FileNotFoundError: if a file or the model is missing.
        FormatError: if the data is damaged.
        ValueError: if the arm lacks what it reads.
    """
    task = find_task(config.task)
    if run_dir.exists():
        raise FileExistsError(f"{run_dir} exists. Give the run a new directory.")
    inputs = config.inputs
    if inputs.embeddings == "static" and vectors is None:
        raise InputError("embeddings='static' needs word vectors: give a file with --vectors.")
    bilm = _BiLM.open(inputs, model, precision, cache_dir, on_layers)
    training = task.read(train_path, training=True, tokenize=bilm.tokenize)
    dev = task.read(dev_path, training=False, tokenize=bilm.tokenize)
    labels = task.labels(training)
    unknown = missing_labels(task, labels, dev)
    if unknown:
        log.warning(
            "%s has %d labels that the training set lacks (%s): they count as wrong",
            dev_path, len(unknown), ", ".join(unknown[:5]),
        )  # fmt: skip
    static = None
    if vectors is not None:
        words = {
            word for example in (*training, *dev)
            for sentence in task.sentences(example) for word in sentence
        }  # fmt: skip
        static = read_text_vectors(vectors, only=words)
    hidden_dims = config.hidden_dims or task.default_hidden_dims
    with at_the_door():  # widths that no network can have
        network = _build(task, inputs, labels, hidden_dims, bilm, static)
    network.reset_parameters(torch.Generator().manual_seed(config.train.seed))
    maker = BatchMaker(inputs, bilm.char_vocab, static)
    best, reports = None, []
    examples = Examples(task, training, bilm.keep), Examples(task, dev, bilm.keep)
    for report in train_model(network, maker, *examples, config.train):
        reports.append(report)
        best = report if report.is_best else best
        if on_epoch is not None:
            on_epoch(report)
    assert best is not None
    facts = {
        "elmokit_version": elmokit.__version__,
        "config": to_dict(config) | {"hidden_dims": list(hidden_dims)},
        "labels": labels,
        "bilm": None if bilm.reference is None else to_dict(bilm.reference),
        "num_layers": bilm.num_layers,
        "layers_dim": bilm.dim,
        "data": {"train": str(train_path), "dev": str(dev_path), "examples": len(training)},
        "dev": {"metric": best.dev.metric, "value": best.dev.value, **best.dev.details},
    }
    with whole_directory(run_dir) as aside:
        _write(aside, facts, network, static, reports)
    return TaskResult(run_dir, best, len(reports), reports[-1].seconds)


class TaskRun:
    """A trained task model with what it reads. Use `TaskRun.load`.

    Attributes:
        task: What it does.
    """

    def __init__(
        self,
        task: Task[Any],
        network: TaskModel,
        labels: list[str],
        maker: BatchMaker,
        bilm: "_BiLM",
    ) -> None:
        self.task, self._network, self._labels = task, network, labels
        self._maker, self._bilm = maker, bilm

    @classmethod
    def load(
        cls, run_dir: Path, *, model: str | None = None, cache_dir: Path | None = None
    ) -> "TaskRun":
        """Load a run directory.

        Args:
            run_dir: As `train_task` wrote it.
            model: The biLM's directory, if it is not where it was.
            cache_dir: Where layers are kept.

        Raises:
            FileNotFoundError: if there is no such run, or its biLM is gone.
            FormatError: if it is damaged or without its weights, or the biLM is another one.
        """
        facts = _read_facts(run_dir)
        config = from_dict(TaskRunConfig, facts["config"], source=str(run_dir / CONFIG_FILE))
        task = find_task(config.task)
        reference = facts["bilm"] and from_dict(BiLMReference, facts["bilm"])
        path = model or (reference.path if reference else None)
        precision = reference.precision if reference else "fp32"
        bilm = _BiLM.open(config.inputs, path, precision, cache_dir, None)
        if reference and bilm.reference and bilm.reference.model_hash != reference.model_hash:
            raise FormatError(
                f"{path} is not the biLM that {run_dir} was trained with: its weights have the "
                f"hash {bilm.reference.model_hash[:12]}, not {reference.model_hash[:12]}. Give the "
                "right one with --model."
            )
        tensors = _read_weights(run_dir)
        static = None
        if (run_dir / WORDS_FILE).exists():
            words = (run_dir / WORDS_FILE).read_text(encoding="utf-8").split("\n")[:-1]
            static = StaticVectors(words, tensors["inputs.static.weight"][2:].numpy())
        network = _build(task, config.inputs, facts["labels"], config.hidden_dims, bilm, static)
        try:
            network.load_state_dict(tensors)
        except RuntimeError as error:
            raise FormatError(
                f"{run_dir / WEIGHTS_FILE} does not fit {CONFIG_FILE}: {error}"
            ) from error
        network.eval()
        return cls(
            task, network, facts["labels"], BatchMaker(config.inputs, bilm.char_vocab, static), bilm
        )

    def evaluate(self, path: Path) -> TaskScore:
        """Score the predictions for a file with gold.

        Raises:
            FormatError: if it is damaged.
        """
        examples = self.task.read(path, training=False, tokenize=self._bilm.tokenize)
        unknown = missing_labels(self.task, self._labels, examples)
        if unknown:
            log.warning(
                "%s has labels that the model never saw (%s): they count as wrong",
                path, ", ".join(unknown[:5]),
            )  # fmt: skip
        return score_model(
            self._network, self._maker, Examples(self.task, examples, self._bilm.keep)
        )

    def predict(self, texts: Iterable[str]) -> list[tuple[Any, Any]]:
        """Return example and prediction for each text; words come from the biLM's tokenizer.

        Raises:
            ValueError: if a text is not what the task reads (two texts, a marked predicate).
        """
        examples = [self.task.from_text(text, self._bilm.tokenize) for text in texts]
        held = Examples(self.task, examples, self._bilm.compute)
        return list(zip(examples, predict(self._network, self._maker, held), strict=True))


class _BiLM:
    """What a task takes from the biLM: layers, tokenizer, character rows."""

    def __init__(
        self,
        embedder: Embedder | None,
        tokenize: Callable[[str], list[str]],
        char_vocab: CharVocab,
        reference: BiLMReference | None,
        cache_dir: Path | None,
        on_layers: Callable[[int, int], None] | None,
    ) -> None:
        self._embedder, self.tokenize, self.char_vocab = embedder, tokenize, char_vocab
        self.reference, self._cache_dir, self._on_layers = reference, cache_dir, on_layers
        self.num_layers = 0 if embedder is None else embedder.num_layers
        self.dim = 0 if embedder is None else embedder.dim

    @classmethod
    def open(
        cls,
        inputs: InputsConfig,
        model: str | None,
        precision: str,
        cache_dir: Path | None,
        on_layers: Callable[[int, int], None] | None,
    ) -> "_BiLM":
        if not inputs.has_layers and model is None:
            tokenizer = build_tokenizer("simple")
            return cls(None, tokenizer.tokenize, CharVocab(), None, cache_dir, on_layers)
        path = find_model(model)
        loaded = load_model(path)
        tokenizer = build_tokenizer(loaded.tokenizer)
        if not inputs.has_layers:
            vocab = loaded.char_vocab
            reference = BiLMReference(path=str(path.absolute()), model_hash=loaded.model_hash())
            return cls(None, tokenizer.tokenize, vocab, reference, cache_dir, on_layers)
        if inputs.embeddings == "random":
            loaded.reset_parameters(torch.Generator().manual_seed(RANDOM_SEED))
        with at_the_door():  # the precision is checked there
            embedder = Embedder.load(loaded, precision=precision)
        reference = BiLMReference(
            path=str(path.absolute()), model_hash=loaded.model_hash(), precision=precision
        )
        return cls(embedder, tokenizer.tokenize, loaded.char_vocab, reference, cache_dir, on_layers)

    @property
    def keep(self) -> "Callable[[list[Sentence]], SentenceLayers] | None":
        if self._embedder is None:
            return None
        embedder = self._embedder

        def keep(sentences: list[Sentence]) -> SentenceLayers:
            return keep_layers(embedder, sentences, self._cache_dir, on_progress=self._on_layers)

        return keep

    @property
    def compute(self) -> "Callable[[list[Sentence]], Sequence[np.ndarray]] | None":
        """The same for a few sentences, whose layers nobody will ask for again."""
        if self._embedder is None:
            return None
        embedder = self._embedder
        return lambda sentences: [
            vectors.transpose(1, 0, 2) for vectors in embedder.embed([list(s) for s in sentences])
        ]


def _build(
    task: Task[Any],
    inputs: InputsConfig,
    labels: list[str],
    hidden_dims: tuple[int, ...],
    bilm: _BiLM,
    static: StaticVectors | None,
) -> TaskModel:
    token_inputs = TokenInputs(
        inputs,
        num_layers=bilm.num_layers,
        layers_dim=bilm.dim,
        max_characters=bilm.char_vocab.config.max_characters,
        static=static,
        num_mixes=task.num_places,
    )
    return task.build(token_inputs, labels, hidden_dims)


def _write(
    directory: Path,
    facts: dict[str, Any],
    network: TaskModel,
    static: StaticVectors | None,
    reports: Sequence[EpochReport],
) -> None:
    text = json.dumps(facts, indent=1, ensure_ascii=False)
    (directory / CONFIG_FILE).write_text(text + "\n", encoding="utf-8")
    tensors = {name: value.contiguous() for name, value in network.state_dict().items()}
    save_file(tensors, directory / WEIGHTS_FILE)
    if static is not None:
        words = "".join(f"{word}\n" for word in static.words)
        (directory / WORDS_FILE).write_text(words, encoding="utf-8")
    rows = [
        {
            "epoch": report.epoch, "loss": report.loss, "seconds": round(report.seconds, 2),
            "metric": report.dev.metric, "dev": report.dev.value, **report.dev.details,
        }
        for report in reports
    ]  # fmt: skip
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (directory / METRICS_FILE).write_text(lines, encoding="utf-8")


def _read_facts(run_dir: Path) -> dict[str, Any]:
    path = run_dir / CONFIG_FILE
    if not path.is_file():
        raise FileNotFoundError(
            f"{run_dir} is no run of a task: it has no {CONFIG_FILE}. `elmokit train TASK --data D "
            "--model M -o RUN` makes one."
        )
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        missing = {"config", "labels", "bilm"} - facts.keys()
    except (ValueError, AttributeError) as error:
        raise FormatError(f"{path} is damaged: {error}. Train the task again.") from error
    if missing:
        raise FormatError(f"{path} lacks {', '.join(sorted(missing))}. Train the task again.")
    return facts


def _read_weights(run_dir: Path) -> dict[str, torch.Tensor]:
    path = run_dir / WEIGHTS_FILE
    if not path.is_file():
        raise FormatError(
            f"{run_dir} lacks its weights: there is no {WEIGHTS_FILE}. Copy the whole directory, "
            "or train the task again."
        )
    try:
        return load_file(path)
    except SafetensorError as error:
        raise FormatError(f"{path} is damaged: {error}. Copy it anew, or train again.") from error
