"""Requests that arrive together are computed together, by one thread, in the order they came.

A request's texts may be spread over batches: after each, a long request goes to the end of the
queue, so that short ones need not wait for all of it.
"""

import asyncio
import itertools
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from elmokit.server.answers import RequestError
from elmokit.server.metrics import Metrics

CLIENT_LEFT = "The client has left."

log = logging.getLogger(__name__)

_PAUSE_SECONDS = 0.001
"""A batch is not held back for others once none arrived for so long."""


@runtime_checkable
class Computation(Protocol):
    """What the thread does with texts: one batch never mixes two of them."""

    def prepare(self, text: Any) -> tuple[Any, int]:
        """Return what `compute` reads of a text, and its size in tokens."""
        ...

    def compute(self, items: list[Any]) -> Sequence[Any]:
        """Return a result for each item."""
        ...


@dataclass(eq=False)
class Job:
    """A request in the queue, then its results."""

    computation: Computation
    texts: Sequence[Any]
    future: asyncio.Future["Job"]
    is_wanted: Callable[[], bool]
    arrived: float = field(default_factory=time.perf_counter)
    next_text: int = 0
    """The first that is in no batch yet."""
    results: dict[int, Any] = field(default_factory=dict)
    error: Exception | None = None
    sizes: list[int] = field(default_factory=list)
    """Tokens of its texts."""
    tokenization_seconds: float = 0.0
    queue_seconds: float | None = None
    inference_seconds: float = 0.0

    @property
    def is_over(self) -> bool:
        """Nothing is left to compute, or nobody waits for it any more."""
        is_dropped = self.error is not None or self.future.cancelled() or not self.is_wanted()
        return is_dropped or len(self.results) == len(self.texts)


@dataclass(frozen=True)
class _Piece:
    job: Job
    index: int
    item: Any
    tokens: int


class Batcher:
    """Queue and thread. `start` and `submit` are called in the event loop.

    Args:
        batch_tokens: Tokens of a batch.
        wait_seconds: How long a request waits for others if the thread has nothing to do.
        metrics: Gets what every batch and request took.
    """

    def __init__(self, *, batch_tokens: int, wait_seconds: float, metrics: Metrics) -> None:
        self._batch_tokens, self._wait_seconds = batch_tokens, wait_seconds
        self._metrics = metrics
        self._jobs: deque[Job] = deque()
        self._changed = threading.Condition()
        self._is_stopping = False
        self._thread = threading.Thread(target=self._work, name="elmokit-batches", daemon=True)

    def start(self) -> None:
        """Start the thread, for the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    def stop(self) -> None:
        """Finish what is queued, then end the thread; blocks."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify()
        self._thread.join()

    @property
    def is_alive(self) -> bool:
        """Whether texts are being computed."""
        return self._thread.is_alive() and not self._is_stopping

    @property
    def queue_size(self) -> int:
        """Requests that wait."""
        return len(self._jobs)

    def check_alive(self) -> None:
        """Refuse a request that would not be computed.

        Raises:
            RequestError: 503 if the server stops.
        """
        if not self.is_alive:
            raise RequestError(503, "The server is stopping.", retry_after=5)

    async def submit(
        self,
        computation: Computation,
        texts: Sequence[Any],
        *,
        timeout_seconds: float,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> Job:
        """Return the job with the results of all texts; it is dropped when it is not wanted.

        Raises:
            RequestError: as `check_alive`; 503 if it takes too long.
            Exception: of the computation.
        """
        self.check_alive()
        job = Job(computation, texts, self._loop.create_future(), is_wanted)
        with self._changed:
            self._jobs.append(job)
            self._changed.notify()
        try:
            async with asyncio.timeout(timeout_seconds):
                return await job.future
        except TimeoutError:
            raise RequestError(
                503, f"This was not computed within {timeout_seconds:g} seconds.", retry_after=5
            ) from None
        finally:
            job.future.cancel()  # the thread drops what nobody waits for
            with self._changed:
                if job in self._jobs:
                    self._jobs.remove(job)

    # --- the thread

    def _work(self) -> None:
        while self._wait_for_jobs():
            batch = self._take_batch()
            if not batch:
                continue
            started = time.perf_counter()
            self._compute(batch)
            seconds = time.perf_counter() - started
            jobs = {piece.job: None for piece in batch}
            for job in jobs:
                if job.queue_seconds is None:
                    job.queue_seconds = started - job.arrived - job.tokenization_seconds
                job.inference_seconds += seconds
            tokens = sum(piece.tokens for piece in batch)
            self._tell(list(jobs), size=len(batch), tokens=tokens)

    def _wait_for_jobs(self) -> bool:
        """Wait for a job, and briefly for others; return False when there will be none."""
        with self._changed:
            while not self._jobs:
                if self._is_stopping:
                    return False
                self._changed.wait()
            until = self._jobs[0].arrived + self._wait_seconds
            while not self._is_stopping and (left := until - time.perf_counter()) > 0:
                if not self._changed.wait(min(left, _PAUSE_SECONDS)):
                    break
        return True

    def _take_batch(self) -> list[_Piece]:
        """Take texts of the first job's computation until the batch is full."""
        batch: list[_Piece] = []
        unfinished: list[Job] = []
        tokens = 0
        while tokens < self._batch_tokens and (job := self._next_job()) is not None:
            if batch and job.computation is not batch[0].job.computation:
                self._put_back([job], first=True)
                break
            pieces = self._prepare(job, self._batch_tokens - tokens)
            batch += pieces
            tokens += sum(piece.tokens for piece in pieces)
            if not job.is_wanted():
                job.error = RequestError(400, CLIENT_LEFT)
                self._tell([job])
            elif not job.is_over and job.next_text < len(job.texts):
                unfinished.append(job)
        self._put_back(unfinished)
        return [piece for piece in batch if not piece.job.is_over]

    def _put_back(self, jobs: list[Job], *, first: bool = False) -> None:
        with self._changed:
            (self._jobs.extendleft if first else self._jobs.extend)(jobs)

    def _next_job(self) -> Job | None:
        with self._changed:
            return self._jobs.popleft() if self._jobs else None

    def _prepare(self, job: Job, num_tokens: int) -> list[_Piece]:
        """Return the next texts of a job, up to ``num_tokens`` or an error."""
        started, pieces = time.perf_counter(), []
        while num_tokens > 0 and not job.is_over and job.next_text < len(job.texts):
            index = job.next_text
            job.next_text += 1
            try:
                item, tokens = job.computation.prepare(job.texts[index])
            except Exception as error:
                job.error = error
                self._tell([job])
                break
            job.sizes.append(tokens)
            num_tokens -= tokens
            pieces.append(_Piece(job, index, item, tokens))
        job.tokenization_seconds += time.perf_counter() - started
        return pieces

    def _compute(self, batch: list[_Piece]) -> None:
        """Compute a batch; if it fails, one job after the other: only the culprit fails."""
        try:
            results = batch[0].job.computation.compute([piece.item for piece in batch])
            for piece, result in zip(batch, results, strict=True):
                piece.job.results[piece.index] = result
        except Exception as error:
            by_job = [list(own) for _, own in itertools.groupby(batch, lambda piece: piece.job)]
            if len(by_job) == 1:
                batch[0].job.error = error
                return
            for own in by_job:
                self._compute(own)

    def _tell(self, jobs: list[Job], *, size: int = 0, tokens: int = 0) -> None:
        self._loop.call_soon_threadsafe(self._deliver, jobs, size, tokens)

    # --- the event loop

    def _deliver(self, jobs: list[Job], size: int, tokens: int) -> None:
        if size:
            self._metrics.observe("te_batch_next_size", size)
            self._metrics.observe("te_batch_next_tokens", tokens)
        for job in jobs:
            if job.future.done():
                continue
            if job.error is not None:
                job.future.set_exception(job.error)
            elif len(job.results) == len(job.texts):
                job.future.set_result(job)
            elif job.is_over:
                job.future.set_exception(RequestError(400, CLIENT_LEFT))
