"""Work on blocks of text in several processes of this machine, in the order of the text."""

import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from multiprocessing import parent_process
from multiprocessing.connection import wait
from threading import Thread
from typing import Any

BLOCK_CHARACTERS = 1 << 18
BLOCKS_AHEAD = 3

Work = Callable[[Any], Any]


@dataclass(frozen=True)
class Workers:
    """How many processes work on the blocks of a text; the result is the same."""

    count: int = 1

    def map(self, make: Callable[[], Work], blocks: Iterable[Any]) -> Iterator[Any]:
        """Yield the result of each block, in order; some blocks are read ahead.

        Each process calls ``make`` once, for what it does with its blocks.
        """
        if self.count == 1:
            yield from map(make(), blocks)
            return
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context

        # Forked children would share the threads of PyTorch and Kiwi, which do not survive a fork.
        executor = ProcessPoolExecutor(self.count, get_context("spawn"), _begin, (make,))
        pending: deque[Future[Any]] = deque()
        try:
            for block in blocks:
                # Results are taken in order, so a slow block holds back at most these.
                pending.append(executor.submit(_run, block))
                if len(pending) > BLOCKS_AHEAD * self.count:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            executor.shutdown(cancel_futures=True)


ONE_PROCESS = Workers()


def blocks_of_lines(lines: Iterable[str], num_characters: int) -> Iterator[list[str]]:
    """Yield lines together that have so many characters, or more by less than a line."""
    block, size = [], 0
    for line in lines:
        block.append(line)
        size += len(line) + 1
        if size >= num_characters:
            yield block
            block, size = [], 0
    if block:
        yield block


_work: Work
"""Of a worker process."""


def _begin(make: Callable[[], Work]) -> None:
    """Set up a worker process; the main process alone answers Ctrl-C."""
    global _work
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    assert parent is not None

    def end_with_parent() -> None:
        wait([parent.sentinel])
        os._exit(1)

    Thread(target=end_with_parent, daemon=True).start()
    _work = make()


def _run(block: Any) -> Any:
    return _work(block)
