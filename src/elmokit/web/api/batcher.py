"""Requests that arrive while others are computed are computed together, by one thread.

The request that has waited longest for each text that it has left comes first: short requests need
not wait for long ones, and a long one does not wait for ever. (Sharing evenly answers nobody in
time when there are too many.) Another thread reads texts, those of each request for a moment in
turn. The event loop owns the queue.
"""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from elmokit.web.server import RequestError

_RETRY = {"Retry-After": "5"}
_TURN_SECONDS = 0.02
"""The time for which texts of a request are read before those of the next one."""


@dataclass(eq=False)
class Job:
    """A request in the queue, then its results.

    ``computation`` has two methods for the threads: ``prepare(text)`` returns what
    ``compute(list)`` reads of a text, and its size in tokens.
    """

    computation: Any
    texts: Sequence[Any]
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

    @property
    def num_texts(self) -> int:
        return len(self.texts)

    @property
    def is_read(self) -> bool:
        return len(self.items) == self.num_texts

    @property
    def is_ready(self) -> bool:
        """Whether it has texts for the next batch."""
        return self.is_read and self.num_taken < self.num_texts and not self.future.done()

    @property
    def urgency(self) -> float:
        """How long it has waited for each text that is in no batch yet."""
        return (time.perf_counter() - self.arrived) / (self.num_texts - self.num_taken)

    def read_some(self, max_tokens: float) -> None:
        """Read the next texts; the vectors of all are in memory until the last one is there."""
        end = time.perf_counter() + _TURN_SECONDS
        while not self.is_read and time.perf_counter() < end:
            item, num_tokens = self.computation.prepare(self.texts[len(self.items)])
            self.sizes.append(num_tokens)
            if sum(self.sizes) > max_tokens:
                raise RequestError(
                    413,
                    f"The first {len(self.sizes):,} texts have over {max_tokens:,} words and "
                    "sentence boundaries: send them in parts.",
                )
            self.items.append(item)


_Batch = list[tuple[Job, Any]]


class Batcher:
    """Queue and threads."""

    def __init__(self, *, batch_tokens: int) -> None:
        self._batch_tokens = batch_tokens
        self._jobs: list[Job] = []  # those without an answer, the oldest first
        self._arrival = asyncio.Event()
        self._reader = ThreadPoolExecutor(1)
        self._is_running = False

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Compute what is submitted; at the end finish what is queued."""
        self._is_running = True
        with self._reader, ThreadPoolExecutor(1) as thread:
            task = asyncio.create_task(self._work(thread))
            task.add_done_callback(lambda _: self.stop())
            try:
                yield
            finally:
                self.stop()
                await task

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
        max_tokens: float = math.inf,
    ) -> Job:  # fmt: skip
        """Return the job with the results of all texts."""
        self.check_running()
        job = Job(computation, texts)
        self._jobs.append(job)
        try:
            async with asyncio.timeout(timeout_seconds):
                loop = asyncio.get_running_loop()
                while not job.is_read:
                    await loop.run_in_executor(self._reader, job.read_some, max_tokens)
                self._arrival.set()
                return await job.future
        except TimeoutError:
            message = f"This was not computed within {timeout_seconds:g} seconds."
            raise RequestError(503, message, headers=_RETRY) from None
        finally:
            job.future.cancel()
            self._jobs.remove(job)
            self._arrival.set()

    async def _work(self, thread: ThreadPoolExecutor) -> None:
        while self._jobs or self._is_running:
            ready = [job for job in self._jobs if job.is_ready]
            if not ready:
                self._arrival.clear()
                await self._arrival.wait()
                continue
            batch = self._take_batch(ready)
            await asyncio.get_running_loop().run_in_executor(thread, _compute, batch)
            for job in dict.fromkeys(job for job, _ in batch):
                if job.future.done():
                    continue
                if job.error is not None:
                    job.future.set_exception(job.error)
                elif len(job.results) == job.num_texts:
                    job.future.set_result(job)

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
