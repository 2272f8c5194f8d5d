"""Requests that arrive together are computed together, by one thread.

Every waiting request gets a share of each batch, so that short ones need not wait for long ones;
what is left of the batch goes to those that got nothing for longest, then to the oldest. What
cannot be computed in time at the measured rate is refused at once, and what was begun is finished.
"""

import asyncio
import itertools
import logging
import math
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from elmokit.web.api.answers import RequestError
from elmokit.web.api.metrics import Metrics

CLIENT_LEFT = "The client has left."

log = logging.getLogger(__name__)

_PAUSE_SECONDS = 0.001
"""A batch is not held back for others once none arrived for so long."""
_RATE_MEMORY = 0.8
"""How much the earlier batches count in the rate when another one has been computed."""
_LEAST_FILLED = 0.25
"""Smaller parts of a batch say nothing about the rate: what every batch costs outweighs them."""
_CHARACTERS_A_TOKEN = 8
"""A text with more characters for each token of a share is not split to see whether it fits."""


@runtime_checkable
class Computation(Protocol):
    """What the thread does with texts: one batch never mixes two of them."""

    def prepare(self, text: Any) -> tuple[Any, int]:
        """Return what `compute` reads of a text, and its size in tokens; `len` is in characters."""
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
    next_piece: "_Piece | None" = None
    """That text, once it was split."""
    last_batch: int = 0
    """Number of the last one with texts of it."""
    num_computed: int = 0
    """Characters."""
    results: dict[int, Any] = field(default_factory=dict)
    error: Exception | None = None
    sizes: list[int] = field(default_factory=list)
    """Tokens of its texts."""
    tokenization_seconds: float = 0.0
    queue_seconds: float | None = None
    inference_seconds: float = 0.0

    def __post_init__(self) -> None:
        self.num_characters = sum(map(len, self.texts))

    @property
    def is_taken(self) -> bool:
        """All texts are in batches."""
        return self.next_text == len(self.texts)

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
    num_characters: int


@dataclass
class _Rate:
    """How fast a computation is; newer batches count more."""

    _characters: float = 0.0
    _seconds: float = 0.0

    def add(self, num_characters: int, seconds: float) -> None:
        self._characters = _RATE_MEMORY * self._characters + num_characters
        self._seconds = _RATE_MEMORY * self._seconds + seconds

    @property
    def seconds(self) -> float:
        """Of a character; 0 before anything was computed."""
        return self._seconds / self._characters if self._characters else 0.0


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
        """With texts that are in no batch yet, the oldest first."""
        self._unanswered: dict[Job, None] = {}
        self._rates: defaultdict[Computation, _Rate] = defaultdict(_Rate)
        self._last_computation: Computation | None = None
        self._num_batches = 0
        self._batch_seconds = 0.0
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
            RequestError: as `check_alive`; 503 if it cannot be computed in time, or was not begun.
            Exception: of the computation.
        """
        self.check_alive()
        job = Job(computation, texts, self._loop.create_future(), is_wanted)
        self._check_time(job, timeout_seconds)
        with self._changed:
            self._jobs.append(job)
            self._unanswered[job] = None
            self._changed.notify()
        try:
            done, _ = await asyncio.wait({job.future}, timeout=timeout_seconds)
            if not done and job.next_text > 0:  # what was computed of it would be wasted
                done, _ = await asyncio.wait({job.future}, timeout=timeout_seconds)
            if not done:
                raise RequestError(
                    503, f"This was not computed within {timeout_seconds:g} seconds.", retry_after=5
                )
            return job.future.result()
        finally:
            job.future.cancel()  # the thread drops what nobody waits for
            with self._changed:
                del self._unanswered[job]
                if job in self._jobs:
                    self._jobs.remove(job)

    def measure(self, computation: Computation, texts: Sequence[Any]) -> None:
        """Compute texts to know the rate before the first request; not while the thread runs."""
        seconds = 0.0
        for _ in range(2):  # the first time finds cold caches
            started = time.perf_counter()
            computation.compute([computation.prepare(text)[0] for text in texts])
            seconds = time.perf_counter() - started
        self._rates[computation].add(sum(map(len, texts)), seconds)

    def _check_time(self, job: Job, timeout_seconds: float) -> None:
        """Refuse a request that would be answered too late, or make others late.

        It is answered when all before it are, or sooner by its share of every batch.
        """
        if not self._unanswered:
            return
        own = self._seconds(job)
        waiting = sum(map(self._seconds, self._unanswered))
        shared = own * (1 + len(self._unanswered)) + 2 * self._batch_seconds
        seconds = min(waiting + own, shared)
        if seconds > timeout_seconds:
            raise RequestError(
                503,
                f"Computing this and what was asked before takes about {seconds:.0f} seconds, more "
                f"than the {timeout_seconds:g} in which an answer is due.",
                retry_after=max(1, math.ceil(seconds - timeout_seconds)),
            )

    def _seconds(self, job: Job) -> float:
        """Return how long the rest of a request is expected to take; 0 if nothing is known."""
        return (job.num_characters - job.num_computed) * self._rates[job.computation].seconds

    # --- the thread

    def _work(self) -> None:
        while self._wait_for_jobs():
            started = time.perf_counter()
            batch = self._take_batch()
            if not batch:
                continue
            computing = time.perf_counter()
            self._compute(batch)
            ended = time.perf_counter()
            jobs = {piece.job: None for piece in batch}
            for job in jobs:
                if job.queue_seconds is None:
                    job.queue_seconds = computing - job.arrived - job.tokenization_seconds
                job.inference_seconds += ended - computing
            for piece in batch:
                piece.job.num_computed += piece.num_characters
            tokens = sum(piece.tokens for piece in batch)
            if tokens >= _LEAST_FILLED * self._batch_tokens:
                num_characters = sum(piece.num_characters for piece in batch)
                self._rates[batch[0].job.computation].add(num_characters, ended - started)
                self._batch_seconds = ended - started
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
        """Take texts of one computation: a share of each request, then more of some."""
        with self._changed:
            waiting = list(self._jobs)
        if not waiting:  # its client has just left
            return []
        others = [job for job in waiting if job.computation is not self._last_computation]
        computation = (others or waiting)[0].computation
        self._last_computation = computation
        waiting = [job for job in waiting if job.computation is computation]
        share = self._batch_tokens // len(waiting)
        self._num_batches += 1
        batch: list[_Piece] = []
        for job in waiting:
            batch += self._take(job, share, is_share=True)
        left = self._batch_tokens - sum(piece.tokens for piece in batch)
        waiting.sort(key=lambda job: job.last_batch)  # those with a text in this batch are last
        has_first = waiting[0].last_batch == self._num_batches
        for job in waiting:  # the first gets a text, however much the shares have taken
            pieces = self._take(job, left, at_least_one=not has_first)
            has_first = has_first or bool(pieces)
            left -= sum(piece.tokens for piece in pieces)
            batch += pieces
        with self._changed:
            for job in waiting:
                if job in self._jobs and (job.is_taken or job.is_over):
                    self._jobs.remove(job)
        return [piece for piece in batch if not piece.job.is_over]

    def _take(
        self, job: Job, num_tokens: int, *, is_share: bool = False, at_least_one: bool = False
    ) -> list[_Piece]:
        """Return the next texts of a request, as many as fit into ``num_tokens``."""
        pieces: list[_Piece] = []
        while not job.is_taken and not self._is_dropped(job):
            text = job.texts[job.next_text]
            if is_share and len(text) > _CHARACTERS_A_TOKEN * num_tokens:
                break
            piece = self._prepared(job, text)
            if piece is None or (piece.tokens > num_tokens and (pieces or not at_least_one)):
                break
            pieces.append(piece)
            num_tokens -= piece.tokens
            job.last_batch = self._num_batches
            job.next_text, job.next_piece = job.next_text + 1, None
        return pieces

    def _is_dropped(self, job: Job) -> bool:
        """Whether nobody waits for a request any more, which is told once."""
        if job.error is None and not job.is_wanted():
            job.error = RequestError(400, CLIENT_LEFT)
            self._tell([job])
        return job.is_over

    def _prepared(self, job: Job, text: Any) -> _Piece | None:
        """Return the next text of a request as it is computed; None for one that cannot be read."""
        if job.next_piece is None:
            started = time.perf_counter()
            try:
                item, tokens = job.computation.prepare(text)
            except Exception as error:
                job.error = error
                self._tell([job])
                return None
            job.sizes.append(tokens)
            job.next_piece = _Piece(job, job.next_text, item, tokens, len(text))
            job.tokenization_seconds += time.perf_counter() - started
        return job.next_piece

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
