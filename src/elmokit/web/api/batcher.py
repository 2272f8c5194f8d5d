"""Requests that arrive together are computed together, by one thread.

Requests with the fewest texts left come first: short ones need not wait for long ones, and what was
begun is finished. (Sharing evenly answers nobody in time when there are too many.) The event loop
owns the queue; it hands the requests to the thread for one batch at a time.
"""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import Any, NamedTuple

from elmokit.web.api.schemas import Metrics
from elmokit.web.server import RequestError

_PAUSE_SECONDS = 0.001
"""A batch is not held back for others once none arrived for so long."""
_RETRY = {"Retry-After": "5"}


@dataclass(eq=False)
class Job:
    """A request in the queue, then its results.

    ``computation`` has two methods for the thread: ``prepare(text)`` returns what ``compute(list)``
    reads of a text, and its size in tokens.
    """

    computation: Any
    texts: Sequence[Any]
    is_wanted: Callable[[], bool]
    max_tokens: float
    """Of all texts together: their vectors are in memory until the last one is there."""
    future: asyncio.Future["Job"] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    arrived: float = field(default_factory=time.perf_counter)
    next_piece: "_Piece | None" = None
    """The first text that is in no batch yet, once it was split."""
    results: list[Any] = field(default_factory=list)
    error: Exception | None = None
    sizes: list[int] = field(default_factory=list)
    """Tokens of its texts, as far as they are in batches."""
    tokenization_seconds: float = 0.0
    queue_seconds: float = 0.0
    inference_seconds: float = 0.0

    @property
    def is_taken(self) -> bool:
        """All texts are in batches."""
        return len(self.sizes) == len(self.texts)

    @property
    def is_over(self) -> bool:
        """Nothing is left to compute, or nobody waits for it any more."""
        is_dropped = self.error is not None or self.future.cancelled() or not self.is_wanted()
        return is_dropped or len(self.results) == len(self.texts)

    def answer(self) -> None:
        """Hand over the results, or why there are none."""
        if self.error is not None:
            self.future.set_exception(self.error)
        elif len(self.results) == len(self.texts):
            self.future.set_result(self)
        else:
            self.future.set_exception(RequestError(400, "The client has left."))


class _Piece(NamedTuple):
    """A text of a batch."""

    job: Job
    item: Any
    num_tokens: int


class Batcher:
    """Queue and thread."""

    def __init__(self, *, batch_tokens: int, wait_seconds: float, metrics: Metrics) -> None:
        self._batch_tokens, self._wait_seconds = batch_tokens, wait_seconds
        self._metrics = metrics
        self._jobs: list[Job] = []  # those without an answer, the oldest first
        self._arrival = asyncio.Event()
        self._last_computation: Any = None
        self._is_running = False

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Compute what is submitted; at the end finish what is queued."""
        self._is_running = True
        with ThreadPoolExecutor(1, thread_name_prefix="elmokit-batches") as thread:
            work = asyncio.create_task(self._work(thread))
            work.add_done_callback(lambda _: self.stop())
            try:
                yield
            finally:
                self.stop()
                await work

    def stop(self) -> None:
        """Take no more requests."""
        self._is_running = False
        self._arrival.set()

    @property
    def queue_size(self) -> int:
        """Requests with texts that are in no batch yet."""
        return sum(not job.is_taken for job in self._jobs)

    def check_running(self) -> None:
        """Refuse a request that would not be computed."""
        if not self._is_running:
            raise RequestError(503, "The server is stopping.", headers=_RETRY)

    async def submit(
        self, computation: Any, texts: Sequence[Any], *, timeout_seconds: float,
        is_wanted: Callable[[], bool] = lambda: True, max_tokens: float = math.inf,
    ) -> Job:  # fmt: skip
        """Return the job with the results of all texts; it is dropped when it is not wanted."""
        self.check_running()
        job = Job(computation, texts, is_wanted, max_tokens)
        self._jobs.append(job)
        self._arrival.set()
        try:
            await asyncio.wait({job.future}, timeout=timeout_seconds)
            if not job.future.done():
                message = f"This was not computed within {timeout_seconds:g} seconds."
                raise RequestError(503, message, headers=_RETRY)
            return job.future.result()
        finally:
            job.future.cancel()  # the thread drops what nobody waits for
            if job in self._jobs:
                self._jobs.remove(job)

    # --- the event loop

    async def _work(self, thread: ThreadPoolExecutor) -> None:
        loop = asyncio.get_running_loop()
        while await self._has_requests():
            jobs = list(self._jobs)
            batch = await loop.run_in_executor(thread, self._compute_batch, jobs)
            if batch:
                self._metrics.observe("te_batch_next_size", len(batch))
                num_tokens = sum(piece.num_tokens for piece in batch)
                self._metrics.observe("te_batch_next_tokens", num_tokens)
            for job in jobs:
                if job.is_over and not job.future.done():
                    self._jobs.remove(job)
                    job.answer()

    async def _has_requests(self) -> bool:
        """Wait for a request, and briefly for others; return False when there will be none."""
        while not self._jobs:
            if not self._is_running:
                return False
            self._arrival.clear()
            await self._arrival.wait()
        until, num_jobs = self._jobs[0].arrived + self._wait_seconds, 0
        while self._is_running and len(self._jobs) > num_jobs and time.perf_counter() < until:
            num_jobs = len(self._jobs)
            await asyncio.sleep(_PAUSE_SECONDS)
        return bool(self._jobs) or self._is_running

    # --- the thread

    def _compute_batch(self, jobs: list[Job]) -> list[_Piece]:
        """Compute texts of some jobs, and return them."""
        batch = self._take_batch([job for job in jobs if not job.is_over])
        computing = time.perf_counter()
        for job in {piece.job: None for piece in batch if not piece.job.results}:
            job.queue_seconds = computing - job.arrived - job.tokenization_seconds
        _compute(batch)
        ended = time.perf_counter()
        for job in {piece.job: None for piece in batch}:
            job.inference_seconds += ended - computing
        return batch

    def _take_batch(self, jobs: list[Job]) -> list[_Piece]:
        """Take texts of one computation, from the requests that have the fewest left.

        The first text is taken however long it is.
        """
        if not jobs:  # its client has just left
            return []
        # a batch has one computation; if others wait, the next one is theirs
        others = [job for job in jobs if job.computation is not self._last_computation]
        self._last_computation = (others or jobs)[0].computation
        jobs = [job for job in jobs if job.computation is self._last_computation]
        jobs.sort(key=lambda job: len(job.texts) - len(job.sizes))
        batch: list[_Piece] = []
        left = self._batch_tokens
        for job in chain.from_iterable(repeat(job, len(job.texts)) for job in jobs):
            if left <= 0:
                break
            piece = None if job.is_taken or job.error else _next_piece(job)
            if piece is None or (batch and piece.num_tokens > left):
                continue
            job.sizes.append(piece.num_tokens)
            job.next_piece = None
            batch.append(piece)
            left -= piece.num_tokens
        return [piece for piece in batch if not piece.job.is_over]


def _next_piece(job: Job) -> _Piece | None:
    """Return the next text of a request as it is computed; None for one that cannot be read."""
    if job.next_piece is None:
        text = job.texts[len(job.sizes)]
        started = time.perf_counter()
        try:
            item, num_tokens = job.computation.prepare(text)
            if sum(job.sizes) + num_tokens > job.max_tokens:
                raise RequestError(
                    413,
                    f"The first {len(job.sizes) + 1:,} texts have over {job.max_tokens:,} words "
                    "and sentence boundaries: send them in parts.",
                )
        except Exception as error:
            job.error = error
            return None
        job.next_piece = _Piece(job, item, num_tokens)
        job.tokenization_seconds += time.perf_counter() - started
    return job.next_piece


def _compute(batch: list[_Piece]) -> None:
    """Compute a batch; if it fails, one job after the other: only the culprit fails."""
    jobs = list(dict.fromkeys(piece.job for piece in batch))
    try:
        results = jobs[0].computation.compute([piece.item for piece in batch]) if jobs else []
    except Exception as error:
        if len(jobs) == 1:
            jobs[0].error = error
            return
        for job in jobs:
            _compute([piece for piece in batch if piece.job is job])
        return
    for piece, result in zip(batch, results, strict=True):
        piece.job.results.append(result)
