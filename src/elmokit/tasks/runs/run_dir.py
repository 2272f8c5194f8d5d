"""The directory of a task run: written, read, and checked against its biLM.

``task.json``: resolved configuration, labels, biLM. ``model.safetensors``: weights of the best
epoch. ``metrics.jsonl``: one row per epoch. ``vectors.txt``: words of the static vectors that are
kept, whose values are among the weights. ``run.json`` and ``checkpoints/`` are for resuming. A run
that `save_run` wrote has weights in a smaller format and a card, ``README.md``, and cannot be
resumed.
"""

import logging
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from os import PathLike
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
from elmokit.inference.precision import pick_device
from elmokit.tasks.inputs.settings import UNRECORDED, InputSettings
from elmokit.tasks.inputs.task_bilm import BiLMReference, TaskBiLM
from elmokit.tasks.inputs.token_inputs import BatchMaker
from elmokit.tasks.registry import find_task
from elmokit.tasks.runs.config import TaskRunConfig, build_network
from elmokit.tasks.task import Task, TaskModel
from elmokit.vectors.static_vectors import StaticVectors
from elmokit.vectors.vector_files import VectorsReference
from elmokit.weights.locate import MODELS, PACKAGED_RUNS, RUN_CONFIG_NAME, path_of
from elmokit.weights.model_files import CARD_NAME, check_replaceable
from elmokit.weights.result_metadata import adding_version_hint, newer_version_hint
from elmokit.weights.storage import Storage, pack, unpack_all
from elmokit.weights.tensor_files import FLOATS, read_tensors

log = logging.getLogger(__name__)

CONFIG_FILE = RUN_CONFIG_NAME
WEIGHTS_FILE, WORDS_FILE = "model.safetensors", "vectors.txt"
SAVED_FILES = (CONFIG_FILE, WEIGHTS_FILE, WORDS_FILE, CARD_NAME)
"""All files of a run that was saved apart from its training."""
STATIC_WEIGHT = "inputs.static.weight"
KEEPS_VECTORS = "keeps_vectors"
"""Key of `task.json`: whether the run holds all static vectors of their file."""
HELD_OUT = "held-out"
"""The dev file in ``data``, for runs whose epoch was chosen on a part of the training set."""
_ADVICE = "Copy the whole directory again, or train the task again."


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
    """Write a run whole or not at all, without what resumes it; see `TaskRun.save`."""
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


@dataclass(frozen=True, kw_only=True)
class _DataRecord:
    train: Any = ""  # paths are text, but perhaps no Unicode
    dev: Any = ""
    examples: int = 0


@dataclass(frozen=True, kw_only=True)
class _TaskRecord:
    """``task.json``."""

    elmokit_version: str = ""
    config: dict[str, Any]
    labels: tuple[str, ...]
    bilm: BiLMReference | None
    vectors: VectorsReference | None
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


def read_metadata(run_dir: Path) -> dict[str, Any]:
    """Return the metadata that `write_best` wrote.

    Raises:
        FileNotFoundError: if there is no run.
        FormatError: if it is damaged, or holds an unknown key.
    """
    path = run_dir / CONFIG_FILE
    if not path.is_file():
        raise FileNotFoundError(
            f"{run_dir} is not a task run: there is no {path}. `elmokit train TASK --data D "
            "--model M -o RUN` makes one; a run stopped in its first epoch has no model."
        )
    required = ("config", "labels", "bilm", "vectors")
    metadata = read_json(path, advice=_ADVICE, required=required)
    parse_record(_TaskRecord, metadata, source=path, advice=_advice_for_settings(metadata))
    return metadata


def _advice_for_settings(metadata: Mapping[str, Any]) -> str:
    """Return what to do if a setting is unknown or missing."""
    return newer_version_hint(metadata.get("elmokit_version", "")) or _ADVICE


def input_settings_of(metadata: dict[str, Any], run_dir: Path) -> InputSettings:
    """Return what a run reads at each word; FormatError if ``metadata`` is not complete."""
    inputs = metadata["config"].get("inputs", {})
    known = UNRECORDED | (inputs if isinstance(inputs, dict) else {})
    # A missing setting must not become its default in silence: the run would read other inputs.
    missing = [field.name for field in fields(InputSettings) if known.get(field.name) is None]
    if missing:
        raise FormatError(
            f"{run_dir / CONFIG_FILE} does not say inputs.{', inputs.'.join(missing)}: it is "
            f"damaged or of another version. {_advice_for_settings(metadata)}"
        )
    return from_dict(InputSettings, known, source=str(run_dir / CONFIG_FILE))


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
    if sha256 is not None and (actual := file_sha256(path)) != sha256:
        raise FormatError(
            f"{path}: damaged, or of another run: its SHA-256 is {actual[:12]}…, but {CONFIG_FILE} "
            f"says {sha256[:12]}…. {_ADVICE}"
        )
    with damage(path, _ADVICE):
        return unpack_all(stored)


def _read_static(run_dir: Path, tensors: dict[str, torch.Tensor]) -> StaticVectors | None:
    """Return the static vectors of a run, if it has any."""
    path, values = run_dir / WORDS_FILE, tensors.get(STATIC_WEIGHT)
    if path.exists() != (values is not None):
        raise FormatError(
            f"{path} and the vectors of its words in {WEIGHTS_FILE} belong together, but one of "
            f"them is missing. {_ADVICE}"
        )
    if values is None:
        return None
    with damage(path, _ADVICE):
        words = read_bounded(path, MAX_WORD_LIST_BYTES).decode().split("\n")[:-1]
        return StaticVectors(words, values[2:].numpy())


def _check_sizes(
    labels: Sequence[str],
    hidden_dims: Sequence[int],
    tensors: Mapping[str, torch.Tensor],
    run_dir: Path,
) -> None:
    """Refuse sizes that do not fit the weights, before a network takes the memory for them.

    Every recurrent layer of width H has more than 3 H² weights, and every label its own.
    """
    num_weights = sum(tensor.numel() for tensor in tensors.values())
    needed = 3 * sum(dim * dim for dim in hidden_dims)
    if len(labels) + needed > num_weights or min(hidden_dims, default=1) < 1:
        raise FormatError(
            f"{run_dir / CONFIG_FILE}: {len(labels):,} `labels` and `config.hidden_dims`="
            f"{list(hidden_dims)} do not fit the {num_weights:,} numbers in {WEIGHTS_FILE}. "
            f"{_ADVICE}"
        )


@dataclass(frozen=True)
class RunParts:
    """What `TaskRun` is made of."""

    task: Task[Any]
    network: TaskModel
    labels: list[str]
    maker: BatchMaker
    bilm: TaskBiLM
    vectors: VectorsReference | None
    metadata: dict[str, Any]


def load_parts(
    run_dir: Path,
    *,
    model: str | None,
    vectors: str | PathLike[str] | None,
    device: str,
    cache_dir: str | PathLike[str] | None,
) -> RunParts:
    """Load the parts of a run; see `TaskRun.load`, which has the arguments and errors."""
    metadata = read_metadata(run_dir)
    labels = metadata["labels"]
    reference = metadata["bilm"] and from_dict(BiLMReference, metadata["bilm"])
    vectors_file = metadata["vectors"] and from_dict(VectorsReference, metadata["vectors"])
    with adding_version_hint(metadata.get("elmokit_version", "")):
        config = from_dict(TaskRunConfig, metadata["config"], source=str(run_dir / CONFIG_FILE))
        task = find_task(config.task).in_units(config.units, config.columns)
        config = replace(config, inputs=input_settings_of(metadata, run_dir))
    if vectors is not None and metadata.get(KEEPS_VECTORS):
        log.warning("%s has no effect: %s keeps its own vectors", vectors, run_dir)
    elif vectors is not None and vectors_file is not None:
        vectors_file = replace(vectors_file, path=str(Path(vectors).absolute()))
    config = config.resolved(with_static=vectors_file is not None)
    needs_bilm = config.inputs.sources.needs_bilm
    if model is not None and not (reference or needs_bilm):
        log.warning("the biLM %s has no effect: %s was trained without one", model, run_dir)
        model = None
    path = model or (_recorded_bilm(reference, run_dir) if reference else None)
    torch_device = pick_device(device)
    bilm = TaskBiLM.open(
        config.inputs, path, precision=reference.precision if reference else "fp32",
        finetune=config.train.finetune_bilm, device=torch_device,
        cache_dir=None if cache_dir is None else Path(cache_dir),
    )  # fmt: skip
    if reference and bilm.reference:
        difference = reference.difference(bilm.reference, is_needed=needs_bilm)
        if difference:
            raise FormatError(
                f"{path} is not the biLM that {run_dir} was trained with: {difference}. "
                f"{_advice_for_other_bilm(run_dir, model, metadata)}"
            )
    tensors = read_weights(run_dir, sha256=metadata.get("weights_sha256"))
    _check_sizes(labels, config.hidden_dims, tensors, run_dir)
    static = _read_static(run_dir, tensors)
    with damage(run_dir / WEIGHTS_FILE, _ADVICE, what=f"does not fit {CONFIG_FILE}"):
        network = build_network(task, config, labels, bilm, static)
        network.load_state_dict(tensors)
    network.eval().to(torch_device)
    maker = BatchMaker(
        config.inputs, bilm.char_vocab, static, bilm=bilm.module, device=torch_device
    )
    return RunParts(task, network, labels, maker, bilm, vectors_file, metadata)


def _recorded_bilm(reference: BiLMReference, run_dir: Path) -> str:
    """Return the path of the biLM that a run was trained with."""
    try:
        return str(MODELS.find(path_of(reference.path)))
    except FileNotFoundError as error:
        error.add_note(
            f"{run_dir} was trained with this biLM. If it has moved: `elmokit predict` and "
            "`evaluate` take --model DIR, in Python TaskRun.load(…, model=DIR)."
        )
        raise


def _advice_for_other_bilm(run_dir: Path, model: str | None, metadata: Mapping[str, Any]) -> str:
    if model is not None:
        return "Give the right one with --model."
    if run_dir.parent == PACKAGED_RUNS:
        return (
            "This installation mixes files of different versions: reinstall elmokit, or train the "
            "task again (`elmokit train`)."
        )
    version = metadata.get("elmokit_version", "")
    return f"The run is from elmokit {version}. Give the right biLM with --model, or train again."
