"""The directory of a task run.

``task.json``: resolved configuration, labels, biLM. ``model.safetensors``: weights of the best
epoch. ``metrics.jsonl``: one row per epoch. ``vectors.txt``: words of the static vectors that are
kept, whose values are among the weights. ``run.json`` and ``checkpoints/`` are for resuming. A run
that `save_run` wrote has weights in a smaller format and a card, ``README.md``, and cannot be
resumed.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from elmokit.config import from_dict, parse_record
from elmokit.errors import FormatError
from elmokit.files.atomic import atomic_directory, atomic_file
from elmokit.files.bounded import MAX_WORD_LIST_BYTES, read_bounded
from elmokit.files.damage import damage
from elmokit.files.hashing import file_sha256
from elmokit.files.json_files import json_bytes, read_json
from elmokit.tasks.inputs.settings import UNRECORDED, InputSettings
from elmokit.tasks.inputs.task_bilm import BiLMReference
from elmokit.tasks.runs.training import EpochReport
from elmokit.tasks.task import TaskModel
from elmokit.vectors.static_vectors import StaticVectors
from elmokit.vectors.vector_files import VectorsReference
from elmokit.weights.locate import RUN_CONFIG_NAME
from elmokit.weights.model_files import CARD_NAME, check_replaceable
from elmokit.weights.result_metadata import newer_version_hint
from elmokit.weights.storage import Storage, pack, unpack_all
from elmokit.weights.tensor_files import FLOATS, mismatch, read_tensors

CONFIG_FILE = RUN_CONFIG_NAME
WEIGHTS_FILE, WORDS_FILE = "model.safetensors", "vectors.txt"
SAVED_FILES = (CONFIG_FILE, WEIGHTS_FILE, WORDS_FILE, CARD_NAME)
"""All files of a run that was saved apart from its training."""
STATIC_WEIGHT = "inputs.static.weight"
KEEPS_VECTORS = "keeps_vectors"
"""Key of `task.json`: whether the run holds all static vectors of their file."""
_ADVICE = "Copy the whole directory again, or train the task again."
_TRAIN_AGAIN = "Train the task again."


def write_best(
    directory: Path, metadata: dict[str, Any], network: TaskModel, static: StaticVectors | None
) -> None:
    """Write the model of the best epoch so far, and its metadata.

    ``static`` are the first of its static vectors; a loaded run looks up others in their file. All
    files are written before the first one replaces that of an earlier epoch, so that a full disk
    leaves the earlier model.
    """
    tensors = {name: value.contiguous() for name, value in network.state_dict().items()}
    contents = {CONFIG_FILE: json_bytes(metadata)}
    if static is not None:
        contents[WORDS_FILE] = _lines(static.words)
        tensors[STATIC_WEIGHT] = tensors[STATIC_WEIGHT][: len(static.values)].clone()
    with ExitStack() as files:  # the last one replaces its file first
        for name, content in contents.items():
            files.enter_context(atomic_file(directory / name)).write_bytes(content)
        save_file(tensors, files.enter_context(atomic_file(directory / WEIGHTS_FILE)))


def save_run(
    directory: Path,
    metadata: dict[str, Any],
    network: TaskModel,
    static: StaticVectors | None,
    card: str,
    dtype: Storage,
) -> None:
    """Write a run whole or not at all, without what resumes it.

    Raises:
        FileExistsError: if ``directory`` exists and holds anything but a saved run.
        ValueError: if ``dtype`` cannot hold a parameter exactly.
    """
    parameters = network.state_dict().items()
    tensors = pack({n: t.detach().to("cpu").contiguous() for n, t in parameters}, dtype)
    check_replaceable(directory, noun="task run", names=SAVED_FILES, mark=CONFIG_FILE)
    with atomic_directory(directory) as fresh:
        save_file(tensors, fresh / WEIGHTS_FILE)
        made = {"weights": dtype, "weights_sha256": file_sha256(fresh / WEIGHTS_FILE)}
        (fresh / CONFIG_FILE).write_bytes(json_bytes(metadata | made, indent=2))
        (fresh / CARD_NAME).write_text(card, encoding="utf-8")
        if static is not None:
            (fresh / WORDS_FILE).write_bytes(_lines(static.words))


def _lines(words: list[str]) -> bytes:
    return "".join(f"{word}\n" for word in words).encode()


def epoch_row(report: EpochReport, step: int) -> dict[str, Any]:
    """Return the row of an epoch in the metrics log; ``step`` is its last update."""
    return {
        "epoch": report.epoch, "step": step, "loss": report.loss,
        "seconds": round(report.seconds, 2),
        "metric": report.dev.metric, "dev": report.dev.value, **report.dev.details,
    }  # fmt: skip


def read_metadata(run_dir: Path) -> dict[str, Any]:
    """Return the metadata that `write_best` wrote.

    Raises:
        FileNotFoundError: if there is no run.
        FormatError: if it is damaged, or holds an unknown key.
    """
    path = run_dir / CONFIG_FILE
    if not run_dir.exists():
        raise FileNotFoundError(f"{run_dir} is not a task run: there is no such directory.")
    if not path.is_file():
        raise FileNotFoundError(
            f"{run_dir} is not a task run: it has no {CONFIG_FILE}. `elmokit train TASK --data D "
            "--model M -o RUN` makes one; a run stopped in its first epoch has no model."
        )
    required = ("config", "labels", "bilm", "vectors")
    metadata = read_json(path, advice=_TRAIN_AGAIN, required=required)
    parse_record(_TaskRecord, metadata, source=path, advice=_advice_for_settings(metadata))
    return metadata


def _advice_for_settings(metadata: Mapping[str, Any]) -> str:
    """Return what to do if a setting is unknown or missing."""
    return newer_version_hint(metadata.get("elmokit_version", "")) or _TRAIN_AGAIN


@dataclass(frozen=True, kw_only=True)
class _DataRecord:
    train: Any = ""  # paths are text, but perhaps no Unicode
    dev: Any = ""
    examples: int = 0


@dataclass(frozen=True, kw_only=True)
class _TaskRecord:
    """``task.json``; `input_settings_of` and `vectors_of` read its tables."""

    elmokit_version: str = ""
    config: dict[str, Any]
    labels: tuple[str, ...]
    bilm: BiLMReference | None
    vectors: Any
    data: _DataRecord | None = None
    dev: Any = None
    card: Any = None
    weights: Storage = "float32"
    weights_sha256: str | None = None
    keeps_vectors: bool = False
    """Whether the run holds all static vectors of its file."""

    def __post_init__(self) -> None:
        if len(set(self.labels)) < len(self.labels):
            raise ValueError("`labels` must be distinct")


def input_settings_of(metadata: dict[str, Any], run_dir: Path) -> InputSettings:
    """Return what a run reads at each word; FormatError if ``metadata`` is not complete."""
    inputs = metadata["config"].get("inputs", {})
    if isinstance(inputs, dict):
        inputs = UNRECORDED | inputs
    _check_complete(inputs, "inputs", InputSettings, run_dir, _advice_for_settings(metadata))
    return from_dict(InputSettings, inputs, source=str(run_dir / CONFIG_FILE))


def vectors_of(metadata: dict[str, Any], run_dir: Path) -> VectorsReference | None:
    """Return the source of a run's static vectors, if any; FormatError if it is not complete."""
    vectors = metadata["vectors"]
    if vectors is None:
        return None
    _check_complete(vectors, "vectors", VectorsReference, run_dir, _advice_for_settings(metadata))
    return from_dict(VectorsReference, vectors, source=str(run_dir / CONFIG_FILE))


def _check_complete(table: object, key: str, kind: type, run_dir: Path, advice: str) -> None:
    """Refuse a table in which a field of a dataclass is missing or null."""
    known = table if isinstance(table, dict) else {}
    names = sorted(field.name for field in fields(kind))
    missing = [f"{key}.{name}" for name in names if known.get(name) is None]
    if missing:
        raise FormatError(
            f"{run_dir / CONFIG_FILE} does not say {', '.join(missing)}: it is damaged or of "
            f"another version. {advice}"
        )


def run_hash(run_dir: Path) -> str | None:
    """Return the hex SHA-256 of the weights of a run; none if there are none yet."""
    path = run_dir / WEIGHTS_FILE
    return file_sha256(path) if path.is_file() else None


def read_weights(run_dir: Path, *, sha256: str | None = None) -> dict[str, torch.Tensor]:
    """Return the weights of a run as fp32.

    Raises:
        FormatError: if they are missing or damaged, or have not the hash ``sha256``.
    """
    path = run_dir / WEIGHTS_FILE
    stored = read_tensors(path, advice=_ADVICE, dtypes=(*FLOATS, "I8"))
    if sha256 is not None and (found := file_sha256(path)) != sha256:
        raise FormatError(
            f"{path}: damaged, or of another run: its SHA-256 is {found[:12]}…, but {CONFIG_FILE} "
            f"says {sha256[:12]}…. {_ADVICE}"
        )
    with damage(path, _ADVICE):
        return unpack_all(stored)


def check_sizes(
    labels: Sequence[str],
    hidden_dims: Sequence[int],
    tensors: Mapping[str, torch.Tensor],
    run_dir: Path,
) -> None:
    """Check sizes of ``task.json`` against the weights before a network is built of them.

    Every recurrent layer of width H has more than 3 H² weights, and every label its own.

    Raises:
        FormatError: if the weights are too few.
    """
    num_weights = sum(tensor.numel() for tensor in tensors.values())
    needed = 3 * sum(dim * dim for dim in hidden_dims)
    if len(labels) + needed > num_weights or min(hidden_dims, default=1) < 1:
        raise FormatError(
            f"{run_dir / CONFIG_FILE}: {len(labels):,} `labels` and `config.hidden_dims`="
            f"{list(hidden_dims)} do not fit the {num_weights:,} numbers in {WEIGHTS_FILE}: the "
            "files are damaged or of different runs. Train the task again."
        )


def check_tensors(network: TaskModel, tensors: Mapping[str, torch.Tensor], run_dir: Path) -> None:
    """Check names and shapes of the weights against the network that ``task.json`` describes.

    Raises:
        FormatError: for the first tensor that is missing, of another shape, or not in the network.
    """
    expected = {name: tuple(value.shape) for name, value in network.state_dict().items()}
    found = {name: tuple(value.shape) for name, value in tensors.items()}
    if fault := mismatch(expected, found):
        raise FormatError(
            f"{run_dir / WEIGHTS_FILE} does not fit the network and labels in {CONFIG_FILE}: "
            f"{fault}. {_ADVICE}"
        )


def read_static(run_dir: Path, tensors: dict[str, torch.Tensor]) -> StaticVectors | None:
    """Return the static vectors of a run, if it has any.

    Raises:
        FormatError: if their words or their values are missing, or the words are damaged.
    """
    path, values = run_dir / WORDS_FILE, tensors.get(STATIC_WEIGHT)
    if not path.exists():
        if values is None:
            return None
        raise FormatError(
            f"{path} is missing: it has the words of the vectors in {WEIGHTS_FILE}. {_ADVICE}"
        )
    if values is None:
        raise FormatError(
            f"{run_dir / WEIGHTS_FILE} has no vectors for the words in {WORDS_FILE}. {_ADVICE}"
        )
    with damage(path, _ADVICE):
        words = read_bounded(path, MAX_WORD_LIST_BYTES).decode().split("\n")[:-1]
        return StaticVectors(words, values[2:].numpy())
