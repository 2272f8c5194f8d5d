"""How many threads a command takes, and how idle ones wait."""

import logging
import os
from pathlib import Path

log = logging.getLogger(__name__)

SPIN_COUNT = 5_000
"""How often an idle OpenMP thread looks for work before it sleeps: 0.05 to 0.2 ms. GNU's 300,000
keep a core busy for 3 to 15 ms; waking a thread takes about 0.01 ms."""
_WAITING = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")
_NUMBER = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")


def prepare_threads() -> None:
    """Let idle OpenMP threads sleep soon, unless the user set how they wait; before imports."""
    # a thread that waits in a busy loop keeps the core from whoever could go on
    if not any(name in os.environ for name in _WAITING):
        os.environ["GOMP_SPINCOUNT"] = str(SPIN_COUNT)


def choose_threads(threads: int | None) -> int | None:
    """Set the number of CPU threads, and return ``threads``.

    The default is the number of cores, or fewer where a cgroup allows fewer, unless
    ``OMP_NUM_THREADS`` is set. Commands that train call it again once PyTorch is imported.
    """
    from elmokit.kernels.library import get_num_threads, set_num_threads

    usual, number = get_num_threads(), threads
    if number is None and not any(name in os.environ for name in _NUMBER):
        limit = cgroup_cores()
        number = usual if limit is None else min(usual, max(1, int(limit + 0.5)))
        if number < usual:
            log.info("%d of %d CPU threads: the container's limit", number, usual)
    if number is not None and number != usual:
        set_num_threads(number)
    return threads


def cgroup_cores(
    root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")
) -> float | None:
    """Return the cores that the process's control groups (version 2) allow; None: no limit."""
    try:
        path = next(line[3:] for line in own.read_text().splitlines() if line.startswith("0::"))
    except (OSError, StopIteration):
        return None
    group = root / path.lstrip("/")
    limits = []
    # every group above limits those below it
    for directory in (group, *group.parents):
        file = directory / "cpu.max"
        if directory.is_relative_to(root) and file.is_file():
            quota, period = file.read_text().split()
            limits += [int(quota) / int(period)] if quota != "max" else []
    return min(limits, default=None)
