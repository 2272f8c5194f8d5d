"""Checkpoints: directories that are written atomically, without pickle.

They hold the tensors of model, optimizer, LSTM state and weight average, and metadata as JSON
(progress, position in the corpus, best score). Random state needs no saving: candidates, dropout
and shuffling are functions of seed and step.
"""

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from elmokit.errors import ConfigError, FormatError
from elmokit.files.atomic import atomic_directory, previous_of
from elmokit.files.damage import damage
from elmokit.files.json_files import read_json
from elmokit.files.temporary import remove_whole
from elmokit.weights.tensor_files import FLOATS, read_tensors

PREFIX = "step-"
METADATA = "metadata.json"


@dataclass(frozen=True)
class Checkpoint:
    """What was read back from disk."""

    path: Path
    model: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    carry: dict[str, Tensor]
    metadata: dict[str, Any]
    average: dict[str, Tensor]
    """Empty if the run keeps no average of its weights."""


def save_checkpoint(
    folder: Path,
    step: int,
    *,
    model: Mapping[str, Tensor],
    optimizer: torch.optim.Optimizer,
    carry: Mapping[str, Tensor],
    metadata: Mapping[str, Any],
    average: Mapping[str, Tensor] | None = None,
    keep: int = 2,
) -> Path:
    """Write ``folder/step-N`` and remove all but the ``keep`` newest checkpoints.

    Only the optimizer's state is saved; its settings come from the configuration. ``carry`` is
    carried from step to step, ``metadata`` must be JSON-serializable.
    """
    for name, path in _all(folder).items():
        if path.name != name:
            path.rename(folder / name)
    for leftover in folder.glob(f".{PREFIX}*"):  # of runs killed while writing, on any machine
        shutil.rmtree(leftover, ignore_errors=True)  # another process may still read it
    target = folder / f"{PREFIX}{step:09d}"
    files = {"model": model, "optimizer": _optimizer_tensors(optimizer), "carry": carry}
    if average:
        files["average"] = average
    with atomic_directory(target) as temp_path:
        for name, tensors in files.items():
            own = {key: value.detach().cpu().contiguous().clone() for key, value in tensors.items()}
            save_file(own, temp_path / f"{name}.safetensors")
        (temp_path / METADATA).write_text(json.dumps(dict(metadata)), encoding="utf-8")
    for old in list(_all(folder).values())[:-keep]:
        remove_whole(old)
    return target


def latest_checkpoint(folder: Path) -> Path | None:
    """Return the newest checkpoint, or none."""
    return next(reversed(_all(folder).values()), None)


def load_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint onto the CPU, so that its folder may go while the run goes on.

    Raises:
        FormatError: if a file is missing or damaged.
    """
    advice = f"The checkpoint is damaged: delete {path} to resume from the one before it."
    model, optimizer, carry, average = (
        _copied(path / f"{name}.safetensors", advice=advice)
        if name != "average" or (path / f"{name}.safetensors").exists()
        else {}
        for name in ("model", "optimizer", "carry", "average")
    )
    return Checkpoint(
        path, model, optimizer, carry, read_json(path / METADATA, advice=advice), average
    )


def _copied(path: Path, *, advice: str) -> dict[str, Tensor]:
    found = read_tensors(path, advice=advice, dtypes=(*FLOATS, "I64"))
    return {name: tensor.clone() for name, tensor in found.items()}  # not mapped from the file


@contextmanager
def restoring(checkpoint: Checkpoint) -> Iterator[None]:
    """Turn errors while state is restored into `FormatError`: the checkpoint does not fit."""
    advice = "Delete the folder to resume from the checkpoint before it."
    with damage(checkpoint.path, advice, what="does not fit this run"):
        try:
            yield
        except ConfigError as error:  # of its metadata
            raise FormatError(f"{error} {advice}") from error


def restore_optimizer(optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Load saved state into a new optimizer over the same parameters.

    A parameter that was never updated has none, so all tensors of one may be absent.

    Raises:
        ValueError: if a parameter has only some of its tensors, or they belong to another model.
    """
    saved: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        index, name = key.split(".", 1)
        saved.setdefault(int(index), {})[name] = tensor
    shapes = [one.shape for group in optimizer.param_groups for one in group["params"]]
    if len({frozenset(state) for state in saved.values()}) > 1 or any(
        index >= len(shapes) or tensor.shape not in ((), shapes[index])
        for index, state in saved.items()
        for tensor in state.values()
    ):
        raise ValueError("optimizer.safetensors lacks tensors, or has those of another model")
    optimizer.load_state_dict({**optimizer.state_dict(), "state": saved})


def _optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    state = optimizer.state_dict()["state"]
    return {f"{index}.{name}": value for index in state for name, value in state[index].items()}


def _all(folder: Path) -> dict[str, Path]:
    """Return all checkpoints by name, oldest first, with one whose replacement a kill cut short."""
    found = {path.name: path for path in folder.glob(f"{PREFIX}*")}
    for path in folder.glob(previous_of(folder / f"{PREFIX}*").name):
        found.setdefault(path.name.removeprefix(".").removesuffix(".previous"), path)
    return dict(sorted(found.items()))
