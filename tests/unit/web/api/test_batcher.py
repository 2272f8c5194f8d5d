import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from elmokit.web.api import batcher as batcher_module
from elmokit.web.api.batcher import Batcher
from elmokit.web.server import RequestError


class Recorder:
    """Upper case; a text has as many tokens as letters. Notes every batch."""

    def __init__(self):
        self.batches, self.go, self.is_computing = [], threading.Event(), threading.Event()
        self.go.set()

    def prepare(self, text):
        if text == "unreadable":
            raise ValueError("unreadable")
        return text, len(text)

    def compute(self, items):
        self.is_computing.set()
        assert self.go.wait(20)
        self.batches.append(items)
        if "bad" in items:
            raise ValueError("bad")
        return [item.upper() for item in items]


@pytest.fixture
def computation():
    return Recorder()


def run(steps, *, batch_tokens=10):
    """Run a coroutine function of a batcher."""

    async def all_of_it():
        batcher = Batcher(batch_tokens=batch_tokens)
        async with batcher.running():
            return await steps(batcher)

    with ThreadPoolExecutor(1) as thread:  # a browser driver has a loop in the main thread
        return thread.submit(asyncio.run, all_of_it()).result()


def ask(batcher, computation, *texts, timeout_seconds=20.0):
    return asyncio.create_task(batcher.submit(computation, texts, timeout_seconds=timeout_seconds))


def busy(computation, later):
    """Return steps that ask for something else, and then, while it is computed, what is to come."""
    computation.go.clear()

    async def steps(batcher):
        first = ask(batcher, computation, "-" * 10)
        await begun(computation)
        asked = later(batcher)
        while sum(len(job.items) == job.num_texts for job in batcher._jobs) < 1 + len(asked):
            await asyncio.sleep(0.001)
        computation.go.set()
        await first
        return await asyncio.gather(*asked, return_exceptions=True)

    return steps


def test_requests_that_arrive_together_are_one_batch(computation):
    jobs = run(busy(computation, lambda batcher: [ask(batcher, computation, t) for t in "abc"]))
    assert [job.results for job in jobs] == [["A"], ["B"], ["C"]]
    assert computation.batches[1:] == [["a", "b", "c"]]


def test_short_requests_come_first_and_then_what_was_begun(computation):
    def later(batcher):
        long = [ask(batcher, computation, *[name * 2] * 6) for name in "ab"]
        return [*long, *(ask(batcher, computation, name) for name in "cd")]

    run(busy(computation, later), batch_tokens=12)
    assert sorted(computation.batches[1]) == ["aa", "aa", "aa", "aa", "aa", "c", "d"]
    assert sorted(computation.batches[2]) == ["aa", "bb", "bb", "bb", "bb", "bb"]


def test_a_long_request_is_answered_while_short_ones_keep_coming(computation):
    async def steps(batcher):
        long = ask(batcher, computation, *["long"] * 50)

        async def client():
            while not long.done():
                await ask(batcher, computation, "s" * 8)

        await asyncio.gather(*(client() for _ in range(4)))
        return await long

    assert run(steps).results == ["LONG"] * 50
    ends = max(i for i, batch in enumerate(computation.batches) if "long" in batch)
    assert any("s" * 8 in batch for batch in computation.batches[:ends])


def test_a_short_text_is_read_between_those_of_a_long_request(computation, monkeypatch):
    monkeypatch.setattr(batcher_module, "_TURN_SECONDS", 0.001)
    read = []

    def prepare(text):
        read.append(text)
        time.sleep(0.02)
        return text, 1

    computation.prepare = prepare

    async def steps(batcher):
        long = ask(batcher, computation, *"l" * 400, timeout_seconds=0.5)
        await asyncio.sleep(0.05)
        assert (await ask(batcher, computation, "s")).results == ["S"]
        with pytest.raises(RequestError):
            await long

    run(steps)
    assert read.index("s") < 10
    assert len(read) < 100  # the rest of what came too late is not read


def test_batches_do_not_mix_computations(computation):
    other = Recorder()

    def later(batcher):
        return [ask(batcher, c, "a") for c in (computation, other, computation, other)]

    assert [job.results[0] for job in run(busy(computation, later))] == ["A"] * 4
    assert computation.batches[1:] + other.batches == [["a", "a"]] * 2


@pytest.mark.parametrize("culprit", ["bad", "unreadable"])
def test_only_the_culprit_of_a_batch_fails(computation, culprit):
    async def steps(batcher):
        asked = [ask(batcher, computation, *texts) for texts in (["a", "b"], ["x", culprit], ["c"])]
        return await asyncio.gather(*asked, return_exceptions=True)

    first, bad, last = run(steps)
    assert (first.results, last.results) == (["A", "B"], ["C"])
    assert isinstance(bad, ValueError)


async def begun(computation):
    """Wait until the thread computes."""
    assert await asyncio.to_thread(computation.is_computing.wait, 20)


def test_late_and_cancelled_requests_leave_the_queue(computation):
    computation.go.clear()

    async def steps(batcher):
        first = ask(batcher, computation, "a")
        await begun(computation)
        late = ask(batcher, computation, "late", timeout_seconds=0.05)
        gone = ask(batcher, computation, "gone")
        with pytest.raises(RequestError) as slow:
            await late
        assert (slow.value.status, batcher.queue_size) == (503, 1)
        gone.cancel()
        await asyncio.sleep(0)
        assert batcher.queue_size == 0
        computation.go.set()
        assert (await first).results == ["A"]

    run(steps)
    assert computation.batches == [["a"]]


def test_stopping_finishes_what_is_queued_and_refuses_more(computation):
    async def steps(batcher):
        asked = [ask(batcher, computation, text) for text in "abcdefgh"]
        await asyncio.sleep(0)
        batcher.stop()
        done = [job.results[0] for job in await asyncio.gather(*asked)]
        with pytest.raises(RequestError) as refused:
            await ask(batcher, computation, "i")
        assert refused.value.status == 503
        return done

    assert run(steps, batch_tokens=3) == list("ABCDEFGH")
