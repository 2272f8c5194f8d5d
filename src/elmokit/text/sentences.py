"""Lines of raw text to sentences of words, by one process or several."""

import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from itertools import chain
from multiprocessing import parent_process
from multiprocessing.connection import wait
from threading import Thread
from typing import Any

from elmokit.files.text_reader import ReadReport
from elmokit.text.normalization import Normalization
from elmokit.text.tokenizers.protocol import NormalizingTokenizer, Tokenizer
from elmokit.text.tokenizers.registry import TokenizerConfig, build_tokenizer

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


_work: Work  # of a worker process


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


def tokenize_lines(
    lines: Iterable[str],
    tokenizer: Tokenizer,
    normalization: Normalization,
    report: ReadReport,
    *,
    workers: Workers = ONE_PROCESS,
) -> Iterator[list[str]]:
    """Yield and count the non-empty sentences of normalized lines; reads slightly ahead."""
    if workers.count > 1:
        config = TokenizerConfig(name=tokenizer.name, version=tokenizer.version)
        make = partial(_block_tokenizer, config, normalization)
        blocks = blocks_of_lines(lines, BLOCK_CHARACTERS)
        sentences_by_line = chain.from_iterable(workers.map(make, blocks))
    else:
        sentences_by_line = NormalizingTokenizer(tokenizer, normalization).sentences_batch(lines)
    for sentences in counted_sentences(sentences_by_line, report):
        yield from sentences


def counted_sentences(
    sentences_by_line: Iterable[list[list[str]]], report: ReadReport
) -> Iterator[list[list[str]]]:
    """Yield the sentences of each line that have words, and count all."""
    for sentences in sentences_by_line:
        if not all(sentences):
            report.skipped["empty_sentence"] += sentences.count([])
            sentences = [sentence for sentence in sentences if sentence]
        report.sentences += len(sentences)
        report.words += sum(map(len, sentences))
        yield sentences


def _block_tokenizer(config: TokenizerConfig, normalization: Normalization) -> Work:
    tokenizer = NormalizingTokenizer(build_tokenizer(config), normalization)
    return lambda lines: list(tokenizer.sentences_batch(lines))
