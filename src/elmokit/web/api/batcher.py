"""Requests that arrive together are computed together, by one thread; another one reads texts.

The request that has waited longest for each text that it has left comes first: short requests need
not wait for long ones, and a long one does not wait for ever. (Sharing evenly answers nobody in
time when there are too many.) The event loop owns the queue.
"""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from elmokit.web.api.schemas import Metrics
from elmokit.web.server import RequestError

_PAUSE_SECONDS = 0.001
"""A batch is not held back for others once none arrived for so long."""
_READ_TOKENS = 1000
"""How much of a request is read, at least a text, before a more urgent one is looked for."""
_RETRY = {"Retry-After": "5"}


@dataclass(eq=False)
class Job:
    """A request in the queue, then its results.

    ``computation`` has two methods for the threads: ``prepare(text)`` returns what
    ``compute(list)`` reads of a text, and its size in tokens.
    """

    computation: Any
    texts: Sequence[Any]
    is_wanted: Callable[[], bool]
    max_tokens: float
    future: asyncio.Future["Job"] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    arrived: float = field(default_factory=time.perf_counter)
    items: list[Any] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    """Tokens of its texts, as far as they are read."""
    num_taken: int = 0
    """Texts that are in batches."""
    results: list[Any] = field(default_factory=list)
    error: Exception | None = None
    tokenization_seconds: float = 0.0
    queue_seconds: float = 0.0
    inference_seconds: float = 0.0

    @property
    def num_texts(self) -> int:
        return len(self.texts)

    @property
    def is_read(self) -> bool:
        return len(self.items) == self.num_texts

    @property
    def urgency(self) -> float:
        """How long it has waited for each text that is in no batch yet."""
        return (time.perf_counter() - self.arrived) / (self.num_texts - self.num_taken)

    def read(self) -> None:
        """Read the next texts; the vectors of all are in memory until the last one is there."""
        started, num_read = time.perf_counter(), 0
        while not self.is_read and num_read < _READ_TOKENS:
            item, num_tokens = self.computation.prepare(self.texts[len(self.items)])
            self.items.append(item)
            self.sizes.append(num_tokens)
            num_read += num_tokens
            if sum(self.sizes) > self.max_tokens:
                raise RequestError(
                    413,
                    f"The first {len(self.sizes):,} texts have over {self.max_tokens:,} words and "
                    "sentence boundaries: send them in parts.",
                )
        self.tokenization_seconds += time.perf_counter() - started


_Batch = list[tuple[Job, Any]]


class Batcher:
    """Queue and threads."""

    def __init__(self, *, batch_tokens: int, wait_seconds: float, metrics: Metrics) -> None:
        self._batch_tokens, self._wait_seconds = batch_tokens, wait_seconds
        self._metrics = metrics
        self._jobs: list[Job] = []  # those without an answer, the oldest first
        self._arrival = asyncio.Event()
        self._is_running = False

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Compute what is submitted; at the end finish what is queued."""
        self._is_running = True
        with ThreadPoolExecutor(1) as reader, ThreadPoolExecutor(1) as thread:
            tasks = [asyncio.create_task(self._read(reader))]
            tasks.append(asyncio.create_task(self._work(thread)))
            for task in tasks:
                task.add_done_callback(lambda _: self.stop())
            try:
                yield
            finally:
                self.stop()
                await asyncio.gather(*tasks)

    def stop(self) -> None:
        """Take no more requests."""
        self._is_running = False
        self._arrival.set()

    @property
    def queue_size(self) -> int:
        """Requests with texts that are in no batch yet."""
        return sum(job.num_taken < job.num_texts for job in self._jobs)

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
            async with asyncio.timeout(timeout_seconds):
                return await job.future
        except TimeoutError:
            message = f"This was not computed within {timeout_seconds:g} seconds."
            raise RequestError(503, message, headers=_RETRY) from None
        finally:
            job.future.cancel()
            self._jobs.remove(job)
            self._arrival.set()

    async def _read(self, thread: ThreadPoolExecutor) -> None:
        while self._jobs or self._is_running:
            unread = [job for job in self._jobs if not (job.is_read or job.future.done())]
            if not unread:
                self._arrival.clear()
                await self._arrival.wait()
                continue
            job = max(unread, key=lambda job: job.urgency)
            try:
                if not job.is_wanted():
                    raise RequestError(400, "The client has left.")
                await asyncio.get_running_loop().run_in_executor(thread, job.read)
            except Exception as error:
                if not job.future.done():
                    job.future.set_exception(error)
            self._arrival.set()

    async def _work(self, thread: ThreadPoolExecutor) -> None:
        while ready := await self._ready_jobs():
            batch = self._take_batch(ready)
            jobs = list(dict.fromkeys(job for job, _ in batch))
            computing = time.perf_counter()
            for job in jobs:
                if not job.results:
                    job.queue_seconds = computing - job.arrived - job.tokenization_seconds
            await asyncio.get_running_loop().run_in_executor(thread, _compute, batch)
            self._metrics.observe("te_batch_next_size", len(batch))
            for job in jobs:
                job.inference_seconds += time.perf_counter() - computing
                if job.future.done():
                    continue
                if job.error is not None:
                    job.future.set_exception(job.error)
                elif len(job.results) == job.num_texts:
                    job.future.set_result(job)

    async def _ready_jobs(self) -> list[Job]:
        """Wait for a request, and briefly for others; return none when there will be none."""
        while self._jobs or self._is_running:
            if ready := self._find_ready():
                until, num_jobs = ready[0].arrived + self._wait_seconds, 0
                while self._is_running and time.perf_counter() < until:
                    if len(self._jobs) == num_jobs and all(job.is_read for job in self._jobs):
                        break
                    num_jobs = len(self._jobs)
                    await asyncio.sleep(_PAUSE_SECONDS)
                if ready := self._find_ready():
                    return ready
            else:
                self._arrival.clear()
                await self._arrival.wait()
        return []

    def _find_ready(self) -> list[Job]:
        ready = []
        for job in self._jobs:
            if job.future.done():
                continue
            if not job.is_wanted():
                job.future.set_exception(RequestError(400, "The client has left."))
            elif job.is_read and job.num_taken < job.num_texts:
                ready.append(job)
        return ready

    def _take_batch(self, jobs: list[Job]) -> _Batch:
        """Take texts of one computation: that of the most urgent request.

        The first text is taken however long it is.
        """
        by_urgency = sorted(jobs, key=lambda job: job.urgency, reverse=True)
        batch: _Batch = []
        left = self._batch_tokens
        for job in by_urgency:
            if job.computation is not by_urgency[0].computation:
                continue
            while job.num_taken < job.num_texts:
                num_tokens = job.sizes[job.num_taken]
                if batch and num_tokens > left:
                    break
                batch.append((job, job.items[job.num_taken]))
                job.num_taken += 1
                left -= num_tokens
        self._metrics.observe("te_batch_next_tokens", self._batch_tokens - left)
        return batch


def _compute(batch: _Batch) -> None:
    """Compute a batch; if it fails, one job after the other: only the culprit fails."""
    jobs = list(dict.fromkeys(job for job, _ in batch))
    try:
        results = jobs[0].computation.compute([item for _, item in batch])
    except Exception as error:
        if len(jobs) == 1:
            jobs[0].error = error
            return
        for job in jobs:
            _compute([(one, item) for one, item in batch if one is job])
        return
    for (job, _), result in zip(batch, results, strict=True):
        job.results.append(result)
