"""The processes that `torchrun` starts, and what they exchange in training."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from importlib import import_module
from typing import Any

import torch
from torch import Tensor, distributed
from torch.nn.parallel import DistributedDataParallel

from elmokit.inference.device import pick_device


@dataclass(frozen=True)
class World:
    """The processes that train together, seen from this one."""

    rank: int = 0
    """Rank 0 writes files and logs."""
    size: int = 1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    @property
    def is_main(self) -> bool:
        return self.rank == 0

    def wrap(self, module: torch.nn.Module) -> torch.nn.Module:
        """Return ``module`` with gradients averaged over all processes."""
        if self.size == 1:
            return module
        device_ids = [self.device] if self.device.type == "cuda" else None
        # Otherwise gradients are put into another order after the first update, and with it the
        # sums of three or more processes: a resumed run would differ in its last bits. The price
        # is a search of the graph in every update.
        return DistributedDataParallel(
            _WithUnused(module, self.device), device_ids=device_ids, find_unused_parameters=True
        )

    def mean(self, values: Tensor) -> Tensor:
        if self.size > 1:
            values = values.clone()
            distributed.all_reduce(values)
            values = values / self.size
        return values

    def from_main(self, values: Tensor) -> Tensor:
        if self.size > 1:
            values = values.clone()
            distributed.broadcast(values, src=0)
        return values

    def agree(self, wanted: bool) -> bool:
        """Return rank 0's answer in every process."""
        return bool(self.from_main(torch.tensor(float(wanted), device=self.device)))

    def gather_rows(self, rows: Tensor, *, dim: int) -> Tensor:
        """Return all processes' ``rows``, joined along ``dim`` in order of rank."""
        if self.size == 1:
            return rows
        parts = [torch.empty_like(rows) for _ in range(self.size)]
        distributed.all_gather(parts, rows.contiguous())
        return torch.cat(parts, dim=dim)

    def barrier(self) -> None:
        if self.size > 1:
            distributed.barrier()


class _WithUnused(torch.nn.Module):
    """A module with a parameter that it does not use: without any, DDP prints a warning."""

    def __init__(self, module: torch.nn.Module, device: torch.device) -> None:
        super().__init__()
        self.module = module
        self.unused = torch.nn.Parameter(torch.zeros((), device=device))

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)


@contextmanager
def world(device: str = "auto") -> Iterator[World]:
    """Join the processes that `torchrun` started; without it, yield a world of one.

    ``device`` is as for `pick_device`; under `torchrun` each process takes its own GPU.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield World(device=pick_device(device))
        return
    own = pick_device(device)
    if use_cuda := own.type == "cuda":
        own = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        torch.cuda.set_device(own)
    # The functions of this module keep the group that exists when it is imported, and with it its
    # threads, as a default argument; DistributedDataParallel would import it later.
    import_module("torch.distributed.nn")
    # a long timeout, because the others wait while rank 0 prepares text and validates
    distributed.init_process_group("nccl" if use_cuda else "gloo", timeout=timedelta(days=1))
    try:
        yield World(distributed.get_rank(), distributed.get_world_size(), own)
        distributed.barrier()  # a process that exits early can break another's connection
    finally:
        distributed.destroy_process_group()
