"""The training loop: a generator that yields one report per update; its checkpoints.

Its caller logs, saves and stops. The ``carry`` (an LSTM's state) is an argument and a result.
"""

import ctypes
import json
import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

import torch
from safetensors.torch import save_file
from torch import Tensor

from elmokit.errors import ConfigError, FormatError
from elmokit.files.atomic import atomic_directory
from elmokit.files.json_files import read_json
from elmokit.files.sources import damage
from elmokit.jobs.job import Pieces
from elmokit.training.distributed import World
from elmokit.training.optimizers import OptimizerConfig
from elmokit.training.schedules import Budget, Progress, ScheduleConfig
from elmokit.weights.arrays import FLOATS
from elmokit.weights.model_dir import read_tensors

Batch = TypeVar("Batch")
Carry = TypeVar("Carry")


@dataclass(frozen=True)
class StepResult(Generic[Carry]):
    """What an objective returns for one batch."""

    loss: Tensor
    """Mean loss, with its graph."""
    parts: dict[str, Tensor]
    num_tokens: int
    carry: Carry


@dataclass(frozen=True)
class StepReport(Generic[Carry]):
    progress: Progress
    """After the update."""
    loss: float
    """Mean over all processes, before the update."""
    parts: dict[str, float]
    learning_rate: float
    gradient_norm: float
    share: float
    carry: Carry


def train(
    objective: Callable[[Batch, Carry, int], StepResult[Carry]],
    batches: Iterator[Batch],
    optimizer: torch.optim.Optimizer,
    *,
    carry: Carry,
    budget: Budget,
    schedule: ScheduleConfig,
    config: OptimizerConfig,
    planned: Budget | None = None,
    until: float = 1.0,
    progress: Progress | None = None,
    started: float | None = None,
    world: World | None = None,
    autocast: Callable[[], AbstractContextManager[Any]] = nullcontext,
) -> Iterator[StepReport[Carry]]:
    """Update until a share of the budget is spent or the batches end.

    ``objective`` takes (batch, carry, step). ``planned`` is what the schedule spreads over
    (default: ``budget``), ``until`` the share of the budget at which to stop, ``started`` the
    `time.monotonic` at second 0 of the run. `FloatingPointError` if the loss is not finite; the
    parameters then keep their values.
    """
    progress = progress or Progress()
    world = world or World()
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    started = time.monotonic() - progress.seconds if started is None else started
    while (share := agreed_share(budget, progress, world)) < until:
        batch = next(batches, None)
        if batch is None:
            return
        planned_share = share if planned is None else planned.share(progress)
        rate = config.learning_rate * schedule.factor(planned_share)
        for group in optimizer.param_groups:
            group["lr"] = rate * group.get("rate_share", 1.0)
        optimizer.zero_grad(set_to_none=True)
        with autocast():
            result = objective(batch, carry, progress.step)
        (result.loss * config.loss_scale).backward()
        limit = float("inf") if config.clip_norm is None else config.clip_norm
        norm = float(torch.nn.utils.clip_grad_norm_(parameters, limit))
        # one exchange between processes for all figures
        names = sorted(result.parts)
        figures = [result.loss.detach(), *(result.parts[name] for name in names)]
        loss, *parts = world.mean(torch.stack(figures).double()).tolist()
        # a NaN is not below infinity either
        if not (loss < float("inf") and norm < float("inf")):
            raise FloatingPointError(
                f"The loss is not finite at step {progress.step + 1} (loss {loss}, gradient norm "
                f"{norm}). Lower optimizer.learning_rate, and resume from the last checkpoint."
            )
        optimizer.step()
        carry = result.carry
        tokens = progress.tokens + result.num_tokens * world.size
        progress = Progress(progress.step + 1, tokens, time.monotonic() - started)
        named_parts = dict(zip(names, parts, strict=True))
        yield StepReport(progress, loss, named_parts, rate, norm, budget.share(progress), carry)


def agreed_share(budget: Budget, progress: Progress, world: World) -> float:
    share = budget.share(progress)
    if not budget.uses_clock:
        return share
    return float(world.from_main(torch.tensor(share, dtype=torch.float64, device=world.device)))


def derived_seed(*parts: int) -> int:
    """Hash integers into one 63-bit seed (the finalizer of splitmix64 over each part)."""
    mixed = 0x9E3779B97F4A7C15
    for part in parts:
        mixed = (mixed ^ part) * 0xBF58476D1CE4E5B9 % 2**64
        mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB % 2**64
        mixed ^= mixed >> 31
    return mixed >> 1


TrainingPrecision = Literal["auto", "fp32", "bf16"]
MAX_RELATIVE_ERROR = 1e-5
_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # numbers of <malloc.h>


@contextmanager
def matmul_precision(name: Literal["highest", "high", "medium"]) -> Iterator[None]:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(name)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


@contextmanager
def quick_matmul(wanted: bool) -> Iterator[bool]:
    """Use the processor's quicker fp32 kernels if they prove to be exact; yield whether they do.

    PyTorch's "medium" precision is twice as fast on some processors at the same accuracy but means
    bf16 on others, so the error is measured first. Quick kernels take megabytes for each of the
    last thousand matrix shapes: code that uses them should have few shapes (see
    `elmokit.training.pretraining.updates.WindowTensors`; validation does without them).
    """
    use = wanted and _medium_is_exact()
    with matmul_precision("medium") if use else nullcontext():
        yield use


def _medium_is_exact() -> bool:
    generator = torch.Generator().manual_seed(0)
    a, b = torch.randn(64, 256, generator=generator), torch.randn(256, 512, generator=generator)
    with matmul_precision("medium"):
        product = a @ b
    exact = a.double() @ b.double()
    return float((product - exact).abs().max() / exact.abs().max()) < MAX_RELATIVE_ERROR


@contextmanager
def kept_memory() -> Iterator[None]:
    """Keep freed memory in the process until the end of the block.

    The GNU C library returns large freed blocks to the system, which clears their pages again on
    the next allocation: a third of an update's time on two cores. No effect with other C libraries,
    or if the environment tunes malloc.
    """
    is_tuned = any(name.startswith(("MALLOC_", "GLIBC_TUNABLES")) for name in os.environ)
    if platform.libc_ver()[0] != "glibc" or is_tuned:
        yield
        return
    libc = ctypes.CDLL(None)
    libc.mallopt(_TRIM_THRESHOLD, 2**31 - 1)
    libc.mallopt(_MMAP_MAX, 0)
    try:
        yield
    finally:  # the defaults
        libc.mallopt(_TRIM_THRESHOLD, 128 * 1024)
        libc.mallopt(_MMAP_MAX, 65536)
        libc.malloc_trim(0)


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
            mapped = read_tensors(file, advice=advice, dtypes=(*FLOATS, "I64"))
            tensors[name] = {key: tensor.clone() for key, tensor in mapped.items()}
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
