"""Work on blocks of text in several processes, here or on a cluster, in the order of the text."""

import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from multiprocessing import parent_process
from multiprocessing.connection import wait
from threading import Thread
from typing import Any, Protocol, runtime_checkable

from elmokit.text.normalization import Normalization
from elmokit.text.tokenized_block import TokenizedBlock
from elmokit.text.tokenizers.protocol import Tokenizer, normalized_sentences
from elmokit.text.tokenizers.registry import TokenizerConfig, build_tokenizer

BLOCK_CHARACTERS = 1 << 18
"""Of lines that a process gets at a time."""
BLOCKS_AHEAD = 3
"""For each process: handed out before they are read."""

Work = Callable[[Any], Any]
"""What a worker does with a block."""


@runtime_checkable
class Pool(Protocol):
    """Running workers."""

    def submit(self, block: Any) -> Future[Any]:
        """Give a block to a worker."""
        ...

    def close(self) -> None:
        """End the workers; blocks that wait are dropped."""
        ...


class ProcessPool:
    """Processes of this machine; each calls ``make`` once, for what it does with its blocks."""

    def __init__(self, count: int, make: Callable[[], Work]) -> None:
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context

        self._executor = ProcessPoolExecutor(count, get_context("spawn"), _begin, (make,))

    def submit(self, block: Any) -> Future[Any]:
        """Give a block to a process."""
        return self._executor.submit(_call, block)

    def close(self) -> None:
        """End the processes."""
        self._executor.shutdown(cancel_futures=True)


@dataclass(frozen=True)
class Workers:
    """Who works on the blocks of a text; the result is the same."""

    count: int = 1
    pool: Callable[[int, Callable[[], Work]], Pool] | None = None
    """Other workers than processes of this machine."""

    @property
    def are_others(self) -> bool:
        """Whether this process leaves the work to others."""
        return self.count > 1 or self.pool is not None

    def map(self, make: Callable[[], Work], blocks: Iterable[Any]) -> Iterator[Any]:
        """Yield the result of each block, in order; some blocks are read ahead."""
        if not self.are_others:
            yield from map(make(), blocks)
            return
        pool = (self.pool or ProcessPool)(self.count, make)
        try:
            yield from results_in_order(pool, blocks, self.count)
        finally:
            pool.close()


ONE_PROCESS = Workers()


def results_in_order(pool: Pool, blocks: Iterable[Any], count: int) -> Iterator[Any]:
    """Yield what ``count`` workers make of each block; some blocks are read ahead."""
    pending: deque[Future[Any]] = deque()
    for block in blocks:
        pending.append(pool.submit(block))
        if len(pending) > BLOCKS_AHEAD * count:
            yield pending.popleft().result()
    while pending:
        yield pending.popleft().result()


def tokenized_blocks(
    lines: Iterable[str], tokenizer: Tokenizer, normalization: Normalization, workers: Workers
) -> Iterator[TokenizedBlock]:
    """Yield the sentences of lines, many lines together; reads some blocks ahead."""
    config = TokenizerConfig(name=tokenizer.name, version=tokenizer.version)
    make = partial(_BlockTokenizer, config, normalization)
    return workers.map(make, blocks_of_lines(lines, BLOCK_CHARACTERS))


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


class _BlockTokenizer:
    """What a worker holds to split lines."""

    def __init__(self, tokenizer: TokenizerConfig, normalization: Normalization) -> None:
        self._tokenizer = build_tokenizer(tokenizer)
        self._normalization: Normalization = normalization

    def __call__(self, lines: list[str]) -> TokenizedBlock:
        return TokenizedBlock.of(normalized_sentences(self._tokenizer, lines, self._normalization))


_work: Work
"""Of a worker process."""


def _begin(make: Callable[[], Work]) -> None:
    """Set up a worker process; the main process alone answers Ctrl-C."""
    global _work
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()
    _work = make()


def _end_with_parent() -> None:
    """End this process when the main one has been killed."""
    parent = parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)


def _call(block: Any) -> Any:
    return _work(block)
