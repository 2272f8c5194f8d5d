"""Workers on a Ray cluster (extra ``ray``), for `elmokit.text.worker_processes.Workers`."""

import logging
import os
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import cached_property, partial
from threading import Lock
from typing import Any

from elmokit.errors import ElmokitError, InputError, MissingExtraError
from elmokit.text.worker_processes import Work

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
try:
    import ray  # pyright: ignore[reportMissingImports]
except ImportError as error:
    raise MissingExtraError("ray", extra="ray") from error

log = logging.getLogger(__name__)
_REACH_SECONDS = 10.0


def connect(
    address: str | None = None, *, num_cpus: int | None = None, num_gpus: float = 0.0
) -> bool:
    """Connect to a Ray cluster unless this process is; return whether it was not before.

    Args:
        address: As for ``ray.init``; default: ``RAY_ADDRESS``, else a new cluster on this machine.
        num_cpus: Of a new cluster; default: the cores of the machine.
        num_gpus: That a new cluster must have, because it cannot grow.

    Raises:
        InputError: if there is no such cluster, or a new one has too few GPUs.
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
    has = ray.cluster_resources().get("GPU", 0) if is_new else num_gpus
    if has < num_gpus:
        ray.shutdown()
        raise InputError(
            f"The workers need {num_gpus:g} GPUs, but this machine has {has:g}. Give fewer "
            "--workers or --gpus, or --address of a cluster that has them."
        )
    return True


@contextmanager
def ended_on_error(is_own: bool) -> Iterator[None]:
    """End a cluster that was started here if what it is for fails to start."""
    try:
        yield
    except BaseException:
        if is_own:
            ray.shutdown()
        raise


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
        cpus = max(os.cpu_count() or 1, count * num_cpus)
        self._is_own = connect(address, num_cpus=cpus, num_gpus=count * num_gpus)
        with ended_on_error(self._is_own):
            self._start(count, make, num_cpus, num_gpus)

    def _start(self, count: int, make: Callable[[], Work], num_cpus: int, num_gpus: float) -> None:
        kind = ray.remote(_Actor).options(
            num_cpus=num_cpus, num_gpus=num_gpus, max_restarts=-1, max_task_retries=-1
        )
        self._shared = ray.put(make)  # kept, because an actor that starts again reads it again
        self.actors: list[Any] = [kind.remote(self._shared) for _ in range(count)]
        self._waiting, self._lock = [0] * count, Lock()
        self._warn_of_few(count, num_cpus, num_gpus)

    def submit(self, block: Any) -> Future[Any]:
        """Give a block to the actor with the fewest; errors of elmokit come back as themselves."""
        with self._lock:
            number = min(range(len(self.actors)), key=self._waiting.__getitem__)
            self._waiting[number] += 1
        future: Future[Any] = Future()
        done = partial(self._finish, number, future)
        self.actors[number].call.remote(block).future().add_done_callback(done)
        return future

    def close(self) -> None:
        """End the actors, and the cluster if it was started for them."""
        for actor in self.actors:
            ray.kill(actor)
        if self._is_own:
            ray.shutdown()

    def _finish(self, number: int, future: Future[Any], done: Future[Any]) -> None:
        with self._lock:
            self._waiting[number] -= 1
        if (error := done.exception()) is None:
            future.set_result(done.result())
            return
        cause = getattr(error, "cause", None)  # of a RayTaskError, which adds a remote traceback
        future.set_exception(cause if isinstance(cause, ElmokitError) else error)

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
        self._make = make

    @cached_property
    def _work(self) -> Work:  # not at once: an error would be one of an actor that died
        return self._make()

    def call(self, block: Any) -> Any:
        return self._work(block)
