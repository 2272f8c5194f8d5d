"""The number of threads of kernels and PyTorch: one setting, also after a fork."""

import functools
import os
import sys
from pathlib import Path
from typing import Any

_wanted: int | None = None
"""A setting that PyTorch has not got yet, since it is not imported."""


def get_num_threads() -> int:
    global _wanted
    torch = _torch()
    if torch is None:
        return _wanted or _default_threads()
    if _wanted is not None:  # set before PyTorch was imported
        torch.set_num_threads(_wanted)
        _wanted = None
    return torch.get_num_threads()


def set_num_threads(number: int) -> None:
    global _wanted
    torch = _torch()
    if torch is None:
        _wanted = number
    else:
        torch.set_num_threads(number)


@functools.cache
def use_one_thread_after_a_fork() -> None:
    """Keep forked processes from waiting for threads of OpenMP, which only their parent has."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=functools.partial(set_num_threads, 1))


def _torch() -> Any:
    """Return PyTorch if somebody has imported it, to the end."""
    torch = sys.modules.get("torch")
    return torch if hasattr(torch, "set_num_threads") else None


@functools.cache
def _default_threads() -> int:
    """Return what PyTorch would take: the usual variables, or the cores that we may use.

    Two hardware threads of a core count once: they share the units that multiply.
    """
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        first = os.environ.get(name, "").split(",")[0].strip()
        if first.isdecimal() and int(first) > 0:
            return int(first)
    try:
        numbers = os.sched_getaffinity(0)
        folders = [Path(f"/sys/devices/system/cpu/cpu{number}/topology") for number in numbers]
        return len({(folder / "thread_siblings_list").read_text() for folder in folders})
    except (AttributeError, OSError):
        return os.cpu_count() or 1
