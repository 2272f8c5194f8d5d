"""How many threads a command uses, and how they wait for each other.

Threads that work in step are as fast as the slowest: one that has to share its core holds up all.
Those that wait in a busy loop also keep the core from whoever could go on.
"""

import logging
import os
import statistics
import time
from dataclasses import dataclass
from pathlib import Path

log = logging.getLogger(__name__)

SPIN_COUNT = 5_000
"""How often an idle OpenMP thread looks for work before it sleeps: 0.05 to 0.2 ms. GNU's 300,000
keep a core busy for 3 to 15 ms; waking a thread takes about 0.01 ms."""
_WAITING = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")
_NUMBER = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
_MIN_SECONDS = 0.2
"""A shorter time says little: the system counts in steps of 10 ms."""


@dataclass(frozen=True)
class ProcessorTimes:
    """Seconds so far, of the cores that this process may use."""

    clock: float
    idle: float
    """Idle, summed over the cores."""
    own: float
    """Of this process."""


_at_start: ProcessorTimes | None = None


def prepare_threads() -> None:
    """Prepare for `choose_threads`; called before imports, which take a while anyway.

    OpenMP threads will sleep after a short wait, or at once where other processes want our cores
    already, unless the user set how they wait.
    """
    global _at_start
    _at_start = processor_times()
    if any(name in os.environ for name in _WAITING):
        return
    if cores_are_shared():
        os.environ["OMP_WAIT_POLICY"] = "passive"
    else:
        os.environ["GOMP_SPINCOUNT"] = str(SPIN_COUNT)


def choose_threads(threads: int | None) -> None:
    """Set the number of CPU threads: ``threads``, or a default.

    The default is the number of cores, or fewer
    where a cgroup allows fewer, or where other processes used
    cores since `prepare_threads`. ``OMP_NUM_THREADS`` overrides it.
    """
    from elmokit.kernels.threads import get_num_threads, set_num_threads

    usual = get_num_threads()
    if threads is None and not any(name in os.environ for name in _NUMBER):
        limits = {
            "the container's limit": cgroup_cores(),
            "other programs use the processor": None
            if _at_start is None
            else free_cores(_at_start),
        }
        why, cores = min(
            ((why, usual if cores is None else cores) for why, cores in limits.items()),
            key=lambda one: one[1],
        )
        threads = min(usual, max(1, int(cores + 0.5)))
        if threads < usual:
            log.info("%d of %d CPU threads: %s (--threads decides)", threads, usual, why)
    if threads is not None and threads != usual:
        set_num_threads(threads)


def free_cores(since: ProcessorTimes) -> float | None:
    """Return how many cores were idle or ours since then; None if that was only just now."""
    now = processor_times()
    if now is None or now.clock - since.clock < _MIN_SECONDS:
        return None
    return (now.idle - since.idle + now.own - since.own) / (now.clock - since.clock)


def cores_are_shared(load: Path = Path("/proc/loadavg")) -> bool:
    """Return whether more threads want to run now than there are cores besides ours."""
    try:
        samples = []
        for _ in range(3):
            running = load.read_text().split()[3].partition("/")[0]
            samples.append(int(running) - 1)  # without this one
            time.sleep(0.001)
        ours = len(os.sched_getaffinity(0))
    except (OSError, AttributeError):
        return False
    return statistics.median(samples) > (os.cpu_count() or ours) - ours


def processor_times(stat: Path = Path("/proc/stat")) -> ProcessorTimes | None:
    """Return the times until now; None on other systems than Linux."""
    try:
        lines = stat.read_text().splitlines()
        cores = os.sched_getaffinity(0)
    except (OSError, AttributeError):
        return None
    ticks = 0
    for line in lines:
        name, *fields = line.split()
        if name.startswith("cpu") and name[3:].isdecimal() and int(name[3:]) in cores:
            ticks += int(fields[3]) + int(fields[4])  # idle, waiting for a disk
    return ProcessorTimes(time.monotonic(), ticks / os.sysconf("SC_CLK_TCK"), time.process_time())


def cgroup_cores(
    root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")
) -> float | None:
    """Return the cores that the process's control groups (version 2) allow; None: no limit."""
    try:
        path = next(line[3:] for line in own.read_text().splitlines() if line.startswith("0::"))
    except (OSError, StopIteration):
        return None
    group, found = root / path.lstrip("/"), []
    for directory in (group, *group.parents):
        if not directory.is_relative_to(root):
            break
        try:
            quota, period = (directory / "cpu.max").read_text().split()
        except OSError:
            continue
        if quota != "max":
            found.append(int(quota) / int(period))
    return min(found, default=None)
