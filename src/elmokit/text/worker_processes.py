"""Tokenizing in several processes, in the order of the text."""

import signal
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context

from elmokit.text.normalization import Normalization, normalize
from elmokit.text.tokenizers.protocol import Tokenizer, sentences_batch
from elmokit.text.tokenizers.registry import TokenizerConfig, build_tokenizer

BLOCK_CHARACTERS = 1 << 18
"""Of lines that a process gets at a time."""
BLOCKS_AHEAD = 3
"""For each process: handed out before they are read."""
_LINE, _SENTENCE, _WORD = "\x1d", "\n", " "  # white space, which no token contains


def sentences_in_processes(
    lines: Iterable[str], tokenizer: Tokenizer, normalization: Normalization, num_workers: int
) -> Iterator[list[list[str]]]:
    """Yield the sentences of each line, as one process would, in the same order.

    Reads some blocks of lines ahead. An empty sentence is an empty list.
    """
    setup = (TokenizerConfig(name=tokenizer.name, version=tokenizer.version), normalization)
    pool = ProcessPoolExecutor(num_workers, get_context("spawn"), _begin, setup)
    pending: deque[Future[str]] = deque()
    try:
        for block in _blocks(lines):
            pending.append(pool.submit(_tokenize, block))
            if len(pending) > BLOCKS_AHEAD * num_workers:
                yield from _decode(pending.popleft().result())
        while pending:
            yield from _decode(pending.popleft().result())
    finally:
        pool.shutdown(cancel_futures=True)


def _blocks(lines: Iterable[str]) -> Iterator[list[str]]:
    block, size = [], 0
    for line in lines:
        block.append(line)
        size += len(line) + 1
        if size >= BLOCK_CHARACTERS:
            yield block
            block, size = [], 0
    if block:
        yield block


def _decode(text: str) -> Iterator[list[list[str]]]:
    for line in text.split(_LINE):
        sentences = line.split(_SENTENCE)[1:]
        yield [sentence.split(_WORD) if sentence else [] for sentence in sentences]


_worker: tuple[Tokenizer, Normalization]
"""Of a worker process."""


def _begin(tokenizer: TokenizerConfig, normalization: Normalization) -> None:
    """Set up a worker process; the main process alone answers Ctrl-C."""
    global _worker
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _worker = build_tokenizer(tokenizer), normalization


def _tokenize(lines: list[str]) -> str:
    """Return the sentences of lines as one text, which is quick to pass to another process."""
    tokenizer, normalization = _worker
    texts = (normalize(line, normalization) for line in lines)
    return _LINE.join(
        "".join(_SENTENCE + _WORD.join(words) for words in sentences)
        for sentences in sentences_batch(tokenizer, texts)
    )
