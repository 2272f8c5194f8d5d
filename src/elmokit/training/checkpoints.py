"""Checkpoints: folders that are whole at any moment, without pickle.

A checkpoint is a `atomic_directory`: a kill or a power cut leaves either the whole of it or none.
It holds the model and optimizer tensors, what is carried from step to step (LSTM memory), the
average of the weights where there is one, and metadata as JSON (progress, data cursor, best score).
Nothing random needs saving: candidates, dropout and shuffling are functions of seed and step.
"""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from elmokit.errors import FormatError
from elmokit.files.atomic import atomic_directory

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
    """Empty where the run keeps no average of its weights."""


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

    Args:
        folder: Where the checkpoints of a run stand.
        step: N, updates made.
        model: State of the model.
        optimizer: Its state is taken; its settings come from the configuration at resume.
        carry: Tensors that go on from step to step.
        metadata: JSON-able.
        average: State of the averaged weights, where there are any.
        keep: Checkpoints that stay.
    """
    for leftover in folder.glob(f".{PREFIX}*"):  # of a run that was killed while it wrote
        shutil.rmtree(leftover)
    target = folder / f"{PREFIX}{step:09d}"
    with atomic_directory(target) as temp_path:
        for name, tensors in (
            ("model", model),
            ("optimizer", _optimizer_tensors(optimizer)),
            ("carry", carry),
            ("average", average or {}),
        ):
            if name == "average" and not tensors:
                continue
            whole = {
                key: value.detach().cpu().contiguous().clone() for key, value in tensors.items()
            }
            save_file(whole, temp_path / f"{name}.safetensors")
        (temp_path / METADATA).write_text(json.dumps(dict(metadata)), encoding="utf-8")
    for old in _all(folder)[:-keep]:
        shutil.rmtree(old)
    return target


def latest_checkpoint(folder: Path) -> Path | None:
    """Return the newest whole checkpoint, or none."""
    found = _all(folder)
    return found[-1] if found else None


def load_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint onto the CPU.

    Raises:
        FormatError: if a file is missing or damaged.
    """
    try:
        model, optimizer, carry = (
            load_file(path / f"{name}.safetensors") for name in ("model", "optimizer", "carry")
        )
        has_average = (path / "average.safetensors").exists()
        average = load_file(path / "average.safetensors") if has_average else {}
        metadata = json.loads((path / METADATA).read_text(encoding="utf-8"))
    except PermissionError:
        raise
    except (OSError, SafetensorError, ValueError) as error:
        raise FormatError(
            f"{path}: this checkpoint is damaged ({error}). Delete the folder to resume from the "
            "one before it."
        ) from error
    return Checkpoint(path, model, optimizer, carry, metadata, average)


def restore_optimizer(optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Put saved state into a freshly built optimizer over the same parameters."""
    saved: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        index, name = key.split(".", 1)
        saved.setdefault(int(index), {})[name] = tensor
    optimizer.load_state_dict(
        {"state": saved, "param_groups": optimizer.state_dict()["param_groups"]}
    )


def _optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    state = optimizer.state_dict()["state"]
    return {
        f"{index}.{name}": value
        for index, values in state.items()
        for name, value in values.items()
    }


def _all(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"{PREFIX}*")) if folder.is_dir() else []
