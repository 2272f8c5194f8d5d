"""Workers on a Ray cluster (extra ``ray``), for `elmokit.text.worker_processes.Workers`."""

import logging
import os
import socket
from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock
from typing import Any

from elmokit.errors import InputError, MissingExtraError
from elmokit.text.worker_processes import Work

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
try:
    import ray  # pyright: ignore[reportMissingImports]
except ImportError as error:
    raise MissingExtraError("ray", extra="ray") from error

log = logging.getLogger(__name__)
_REACH_SECONDS = 10.0


def connect(address: str | None = None, *, num_cpus: int | None = None) -> bool:
    """Connect to a Ray cluster unless this process is; return whether it was not before.

    Args:
        address: As for ``ray.init``; default: ``RAY_ADDRESS``, else a new cluster on this machine.
        num_cpus: Of a new cluster; default: the cores of the machine.

    Raises:
        InputError: if there is no such cluster.
    """
    if ray.is_initialized():
        return False
    address = address or os.environ.get("RAY_ADDRESS") or "local"
    is_new = address == "local"
    options = {"num_cpus": num_cpus, "include_dashboard": False} if is_new else {}
    try:
        _check_reachable(address)
        ray.init(address=address, logging_level=logging.ERROR, **options)
    except (OSError, ValueError, RuntimeError) as error:
        raise InputError(
            f"No Ray cluster at {address!r}: {str(error).splitlines()[0]} Start one with `ray "
            "start --head`, or leave out --address for a new one on this machine."
        ) from error
    return True


def _check_reachable(address: str) -> None:
    """Raise `OSError` if nobody answers at HOST:PORT: Ray itself tries for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), timeout=_REACH_SECONDS).close()


class RayPool:
    """Actors of a Ray cluster; each calls ``make`` once, for what it does with its blocks.

    An actor that dies is started again, here or on another machine, and its blocks are done again.

    Args:
        count: Actors.
        make: Pickled once, for all.
        address: As for `connect`.
        num_cpus: Cores of each actor, and its CPU threads.
        num_gpus: GPUs of each; 0.25 lets four share one.

    Raises:
        InputError: as `connect`.
    """

    def __init__(
        self,
        count: int,
        make: Callable[[], Work],
        *,
        address: str | None = None,
        num_cpus: int = 1,
        num_gpus: float = 0.0,
    ) -> None:
        self._is_own = connect(address, num_cpus=max(os.cpu_count() or 1, count * num_cpus))
        kind = ray.remote(_Actor).options(
            num_cpus=num_cpus, num_gpus=num_gpus, max_restarts=-1, max_task_retries=-1
        )
        self._shared = ray.put(make)  # kept, because an actor that starts again reads it again
        self.actors = [kind.remote(self._shared) for _ in range(count)]
        self._waiting, self._lock = [0] * count, Lock()
        self._warn_of_few(count, num_cpus, num_gpus)

    def submit(self, block: Any) -> Future[Any]:
        """Give a block to the actor with the fewest."""
        with self._lock:
            number = min(range(len(self.actors)), key=self._waiting.__getitem__)
            self._waiting[number] += 1
        future = self.actors[number].call.remote(block).future()
        future.add_done_callback(lambda _: self._finished(number))
        return future

    def close(self) -> None:
        """End the actors, and the cluster if it was started for them."""
        for actor in self.actors:
            ray.kill(actor)
        if self._is_own:
            ray.shutdown()

    def _finished(self, number: int) -> None:
        with self._lock:
            self._waiting[number] -= 1

    def _warn_of_few(self, count: int, num_cpus: int, num_gpus: float) -> None:
        has = ray.cluster_resources()
        for name, wanted in (("CPU", count * num_cpus), ("GPU", count * num_gpus)):
            if has.get(name, 0) < wanted:
                log.warning(
                    "%d actors want %g of %s, the cluster has %g: some wait until it grows",
                    count, wanted, name, has.get(name, 0),
                )  # fmt: skip


class _Actor:
    def __init__(self, make: Callable[[], Work]) -> None:
        self._work = make()

    def call(self, block: Any) -> Any:
        return self._work(block)
