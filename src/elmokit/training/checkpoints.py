"""Checkpoints of a training: directories ``step-N`` with tensors and metadata, whole or absent."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from elmokit.errors import ConfigError, FormatError
from elmokit.files.atomic import atomic_directory
from elmokit.files.json_files import read_json
from elmokit.files.sources import damage
from elmokit.jobs.job import Pieces
from elmokit.weights.arrays import check_finite

NUM_KEPT = 2
METADATA = "metadata.json"


@dataclass(frozen=True)
class Checkpoint:
    path: Path
    model: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    carry: dict[str, Tensor]
    metadata: dict[str, Any]
    average: dict[str, Tensor]
    """Empty if the run keeps no average of its weights."""


def save_checkpoint(
    checkpoints: Pieces,
    step: int,
    *,
    model: Mapping[str, Tensor],
    optimizer: torch.optim.Optimizer,
    carry: Mapping[str, Tensor],
    metadata: Mapping[str, Any],
    average: Mapping[str, Tensor] | None = None,
) -> None:
    """Write ``step-N`` and remove all but the `NUM_KEPT` newest checkpoints."""
    checkpoints.tidy()
    states = optimizer.state_dict()["state"]
    flat = {f"{i}.{name}": value for i in states for name, value in states[i].items()}
    files = {"model": model, "optimizer": flat, "carry": carry}
    if average:
        files["average"] = average
    with atomic_directory(checkpoints.folder / f"{checkpoints.prefix}{step:09d}") as temp_path:
        for name, tensors in files.items():
            own = {key: value.detach().cpu().contiguous().clone() for key, value in tensors.items()}
            save_file(own, temp_path / f"{name}.safetensors")
        (temp_path / METADATA).write_text(json.dumps(dict(metadata)), encoding="utf-8")
    checkpoints.remove(newest_kept=NUM_KEPT)


def load_checkpoint(checkpoints: Pieces) -> Checkpoint | None:
    """Read the newest checkpoint, if any, onto the CPU."""
    path = checkpoints.latest
    if path is None:
        return None
    advice = f"The checkpoint is damaged: delete {path} to resume from the one before it."
    tensors: dict[str, dict[str, Tensor]] = {"average": {}}
    for name in ("model", "optimizer", "carry", "average"):
        file = path / f"{name}.safetensors"
        if name != "average" or file.exists():
            if not file.exists():
                raise FormatError(f"{file}: missing. {advice}")
            file.open("rb").close()  # system errors name the path here, but not in safetensors
            with damage(file, advice, what="not a complete safetensors file"):
                mapped = load_file(file)
            tensors[name] = {key: tensor.clone() for key, tensor in mapped.items()}
            for key, tensor in tensors[name].items():
                check_finite(tensor.float().numpy(), key, file)
    return Checkpoint(path, metadata=read_json(path / METADATA, advice=advice), **tensors)


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

    PyTorch would compute nonsense with part of a state, or another model's: `ValueError`.
    """
    saved: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        index, name = key.split(".", 1)
        saved.setdefault(int(index), {})[name] = tensor
    shapes = [p.shape for group in optimizer.param_groups for p in group["params"]]
    if len({frozenset(state) for state in saved.values()}) > 1 or any(
        index >= len(shapes) or tensor.shape not in ((), shapes[index])
        for index, state in saved.items()
        for tensor in state.values()
    ):
        raise ValueError("optimizer.safetensors lacks tensors, or has those of another model")
    optimizer.load_state_dict({**optimizer.state_dict(), "state": saved})
