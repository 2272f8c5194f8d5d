"""The settings of a task run, and its directory, written and read.

``task.json``: resolved configuration, labels, biLM. ``model.safetensors``: weights of the best
epoch. ``metrics.jsonl``: one row per epoch. ``vectors.txt``: words of the static vectors that are
kept, whose values are among the weights. ``run.json`` and ``checkpoints/`` are for resuming; a copy
of the run needs neither.
"""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from safetensors.numpy import save_file

from elmokit.config import from_dict, parse_record
from elmokit.errors import Bounds, CheckedFields, Count, FormatError, Positive, Seed
from elmokit.files.atomic import atomic_file
from elmokit.files.json_files import json_bytes, read_json
from elmokit.files.lines import MAX_WORD_LIST_BYTES, read_bounded
from elmokit.files.sources import damage, file_sha256
from elmokit.jobs.identity import FIXED
from elmokit.tasks.inputs.settings import UNRECORDED, InputSettings
from elmokit.tasks.inputs.task_bilm import BiLMReference
from elmokit.tasks.registry import find_task
from elmokit.tasks.task import Units
from elmokit.vectors.static_vectors import StaticVectors
from elmokit.vectors.vector_files import VectorsReference
from elmokit.weights.arrays import Storage, StoredArrays
from elmokit.weights.locate import RUN_CONFIG_NAME

CONFIG_FILE = RUN_CONFIG_NAME
WEIGHTS_FILE, WORDS_FILE = "model.safetensors", "vectors.txt"
STATIC_WEIGHT = "inputs.static.weight"
KEEPS_VECTORS = "keeps_vectors"
"""Key of `task.json`: whether the run holds all static vectors of their file."""
HELD_OUT = "held-out"
"""The dev file in ``data``, for runs whose epoch was chosen on a part of the training set."""
ADVICE = "Copy the whole directory again, or train the task again."  # for damaged files


def write_best(
    directory: Path,
    metadata: dict[str, Any],
    arrays: Mapping[str, np.ndarray],
    static: StaticVectors | None,
) -> None:
    """Write the model of the best epoch so far, and its metadata."""
    stored = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    small_files = {CONFIG_FILE: json_bytes(metadata)}
    if static is not None:
        stored[STATIC_WEIGHT] = stored[STATIC_WEIGHT][: len(static.values)]
        small_files[WORDS_FILE] = "".join(f"{word}\n" for word in static.words).encode()
    # All files are written before the first one replaces that of an earlier epoch, so that a full
    # disk leaves the earlier model. The last one replaces its file first.
    with ExitStack() as files:
        for name, content in small_files.items():
            files.enter_context(atomic_file(directory / name)).write_bytes(content)
        save_file(stored, files.enter_context(atomic_file(directory / WEIGHTS_FILE)))


@dataclass(frozen=True, kw_only=True)
class _TaskRecord:
    """``task.json``."""

    elmokit_version: str = ""
    config: dict[str, Any]
    labels: tuple[str, ...]
    bilm: BiLMReference | None
    vectors: VectorsReference | None
    data: dict[str, Any] | None = None  # paths are text, but perhaps no Unicode
    dev: Any = None
    card: Any = None
    weights: Storage = "float32"
    weights_sha256: str | None = None
    keeps_vectors: bool = False


def read_metadata(run_dir: Path) -> dict[str, Any]:
    """Return the metadata that `write_best` wrote."""
    path = run_dir / CONFIG_FILE
    if not path.is_file():
        raise FileNotFoundError(
            f"{run_dir} is not a task run: there is no {path}. `elmokit train TASK --data D "
            "--model M -o RUN` makes one; a run stopped in its first epoch has no model."
        )
    required = ("config", "labels", "bilm", "vectors")
    metadata = read_json(path, advice=ADVICE, required=required)
    _drop_old_settings(metadata)
    parse_record(_TaskRecord, metadata, source=path, advice=ADVICE)
    return metadata


def _drop_old_settings(metadata: dict[str, Any]) -> None:
    """Drop what runs of earlier versions record of their training and a use does not need."""
    config, bilm = metadata["config"], metadata["bilm"]
    if isinstance(config, dict):
        if config.get("columns", "") is None:  # others change what is read: an unknown setting
            del config["columns"]
        if isinstance(train := config.get("train"), dict):
            for name in ("lowercase_share", "finetune_bilm", "bilm_learning_rate"):
                train.pop(name, None)
    if isinstance(bilm, dict):
        bilm.pop("finetuned", None)


def input_settings_of(metadata: dict[str, Any], run_dir: Path) -> InputSettings:
    """Return what a run reads at each word; FormatError if ``metadata`` is not complete."""
    inputs, path = metadata["config"].get("inputs", {}), run_dir / CONFIG_FILE
    known = UNRECORDED | (inputs if isinstance(inputs, dict) else {})
    # A missing setting must not become its default in silence: the run would read other inputs.
    missing = [field.name for field in fields(InputSettings) if known.get(field.name) is None]
    if missing:
        raise FormatError(
            f"{path} does not say inputs.{', inputs.'.join(missing)}: it is damaged or of another "
            f"version. {ADVICE}"
        )
    return from_dict(InputSettings, known, source=str(path))


def run_hash(run_dir: Path) -> str | None:
    path = run_dir / WEIGHTS_FILE
    return file_sha256(path) if path.is_file() else None


def read_weights(run_dir: Path, *, sha256: str | None = None) -> dict[str, np.ndarray]:
    """Return the weights of a run as fp32; FormatError if they have not the hash ``sha256``."""
    path = run_dir / WEIGHTS_FILE
    return dict(StoredArrays(path, sha256=sha256, config_name=CONFIG_FILE, advice=ADVICE))


def read_static(run_dir: Path, arrays: Mapping[str, np.ndarray]) -> StaticVectors | None:
    path, values = run_dir / WORDS_FILE, arrays.get(STATIC_WEIGHT)
    if values is None:
        return None
    with damage(path, ADVICE):
        words = read_bounded(path, MAX_WORD_LIST_BYTES).decode().split("\n")[:-1]
        return StaticVectors(words, values[2:])


@dataclass(frozen=True, kw_only=True)
class TaskTrainConfig(CheckedFields):
    """How a task model is trained."""

    epochs: Count = 20
    """Most passes over the training set."""
    batch_size: Count | None = field(default=None, metadata=FIXED)
    """Examples per update; none: the task's default."""
    learning_rate: Positive = 1e-3
    """Peak rate of Adam."""
    schedule: Literal["constant", "cosine"] = "constant"
    """Of the rate; ``cosine`` rises over the first twentieth of all epochs and falls to a twentieth
    of the peak at their end."""
    clip_norm: Positive = 5.0
    """Bound on the global norm of the gradient."""
    patience: Count = 4
    """Whole epochs without a better dev score before training ends."""
    seed: Seed = field(default=0, metadata=FIXED)
    """Of weights, order and dropout."""
    label_share: Annotated[float, Bounds(1e-12, 1.0)] = field(default=1.0, metadata=FIXED)
    """Share of the training examples that is used, drawn with the seed."""


@dataclass(frozen=True, kw_only=True)
class TaskRunConfig(CheckedFields):
    """Everything that decides a task run."""

    task: str = field(metadata=FIXED)
    """One of `elmokit.tasks.registry.TASKS`."""
    units: Units = field(default="words", metadata=FIXED)
    """What a token of the data is; ``morphemes``: for ``pos`` from a Korean treebank;
    ``characters``: for ``ner`` whose rows are the characters of the text."""
    hidden_dims: tuple[int, ...] = field(default=(), metadata=FIXED)
    """Widths of the recurrent layers; none: the task's default."""
    dropout: Annotated[float, Bounds(0.0, 0.999)] | None = field(default=None, metadata=FIXED)
    """Of the network; none: the task's default. Mixtures have ``inputs.dropout``; where that is 0
    by default (pos, ner, nli) the network drops them with its other inputs."""
    inputs: InputSettings = field(default_factory=InputSettings, metadata=FIXED)
    """What is read at each word."""
    train: TaskTrainConfig = field(default_factory=TaskTrainConfig)
    """How the model is trained."""

    def resolved(self, *, with_static: bool) -> "TaskRunConfig":
        """Return the configuration completed with the task's defaults."""
        task = find_task(self.task)
        return replace(
            self,
            hidden_dims=self.hidden_dims or task.default_hidden_dims,
            dropout=task.default_dropout if self.dropout is None else self.dropout,
            inputs=task.input_settings(self.inputs, with_static=with_static),
            train=replace(self.train, batch_size=self.train.batch_size or task.default_batch_size),
        )
