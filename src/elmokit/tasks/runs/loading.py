"""The parts of a trained task, read from its directory and checked against each other."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

from elmokit.config import from_dict
from elmokit.errors import FormatError
from elmokit.inference.precision import pick_device
from elmokit.tasks.inputs.task_bilm import BiLMReference, TaskBiLM
from elmokit.tasks.inputs.token_inputs import BatchMaker
from elmokit.tasks.registry import find_task
from elmokit.tasks.runs.config import TaskRunConfig, build_network
from elmokit.tasks.runs.run_dir import (
    CONFIG_FILE,
    KEEPS_VECTORS,
    WEIGHTS_FILE,
    check_sizes,
    check_tensors,
    input_settings_of,
    read_metadata,
    read_static,
    read_weights,
    vectors_of,
)
from elmokit.tasks.task import Task, TaskModel
from elmokit.vectors.vector_files import VectorsReference
from elmokit.weights.locate import MODELS, PACKAGED_RUNS, path_of
from elmokit.weights.result_metadata import adding_version_hint

log = logging.getLogger(__name__)


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
    cache_dir = None if cache_dir is None else Path(cache_dir)
    metadata = read_metadata(run_dir)
    with adding_version_hint(metadata.get("elmokit_version", "")):
        config = from_dict(TaskRunConfig, metadata["config"], source=str(run_dir / CONFIG_FILE))
        task = find_task(config.task).in_units(config.units, config.columns)
        given = vectors_of(metadata, run_dir)
        config = replace(config, inputs=input_settings_of(metadata, run_dir))
    if vectors is not None and metadata.get(KEEPS_VECTORS):
        log.warning("%s has no effect: %s keeps its own vectors", vectors, run_dir)
    elif given is not None and vectors is not None:
        given = replace(given, path=str(Path(vectors).absolute()))
    config = config.resolved(with_static=given is not None)
    reference = metadata["bilm"] and from_dict(BiLMReference, metadata["bilm"])
    if model is not None and not (reference or config.inputs.sources.needs_bilm):
        log.warning("the biLM %s has no effect: %s was trained without one", model, run_dir)
        model = None
    path = model or (_recorded_bilm(reference, run_dir) if reference else None)
    precision = reference.precision if reference else "fp32"
    chosen = pick_device(device)
    bilm = TaskBiLM.open(
        config.inputs, path, precision=precision, finetune=config.train.finetune_bilm,
        device=chosen, cache_dir=cache_dir,
    )  # fmt: skip
    if reference and bilm.reference and (
        difference := reference.difference(
            bilm.reference, is_needed=config.inputs.sources.needs_bilm
        )
    ):  # fmt: skip
        raise FormatError(
            f"{path} is not the biLM that {run_dir} was trained with: {difference}. "
            f"{_advice_for_other_bilm(run_dir, model, metadata)}"
        )
    tensors = read_weights(run_dir, sha256=metadata.get("weights_sha256"))
    check_sizes(metadata["labels"], config.hidden_dims, tensors, run_dir)
    static = read_static(run_dir, tensors)
    try:
        network = build_network(task, config, metadata["labels"], bilm, static)
    except (RuntimeError, ValueError) as error:
        raise FormatError(
            f"{run_dir / WEIGHTS_FILE} does not fit {CONFIG_FILE}: {error}"
        ) from error
    check_tensors(network, tensors, run_dir)
    network.load_state_dict(tensors)
    network.eval().to(chosen)
    maker = BatchMaker(config.inputs, bilm.char_vocab, static, bilm=bilm.module, device=chosen)
    return RunParts(task, network, metadata["labels"], maker, bilm, given, metadata)


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
    return (
        f"The run is from elmokit {metadata.get('elmokit_version', '')}. Give the right biLM with "
        "--model, or train the task again."
    )
