"""How fast a model embeds on this machine, and what limits it."""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch.nn import functional

from elmokit.bilm.bilm import BiLMConfig
from elmokit.bilm.char_cnn import PADDING_ID
from elmokit.embed.embedder import Embedder
from elmokit.inference.precision import Precision
from elmokit.kernels.inference import load_kernels
from elmokit.kernels.layers import PackedLinear
from elmokit.text.char_vocab import CharVocab

Limit = Literal["arithmetic", "memory", "other work"]
"""What takes the time: matrix products, reading weights, or neither."""

CEILING_ROWS, CEILING_DIM = 256, 2048
"""Shape of the products that measure the processor."""
MEMORY_VALUES = 2**26
"""fp32 values that are read to measure the memory: 256 MB."""
CACHE_BYTES = 2**24
"""Smaller recurrent weights are assumed to stay in the CPU cache: 16 MB."""
BUSY = 0.3
"""Below this share of both ceilings, something else takes the time."""


@dataclass(frozen=True)
class Ceilings:
    """What this machine can do."""

    operations_per_second: float
    """In large matrix products, at the given precision."""
    bytes_per_second: float
    """Read from memory."""


@dataclass(frozen=True)
class Speed:
    """One measurement."""

    precision: Precision
    sentences_at_once: int
    tokens_per_second: float
    """Median; words and the two boundaries of each sentence."""
    spread: float
    """Interquartile range over the median; partly due to different sentence lengths."""
    share_of_arithmetic: float
    """Of the ceiling in operations per second."""
    share_of_memory: float
    """Of the ceiling in bytes per second; weights are read at every step unless cached."""
    limit: Limit


def measure_ceilings(precision: Precision) -> Ceilings:
    """Measure large matrix products and memory reads, on all threads."""
    x = torch.ones(CEILING_ROWS, CEILING_DIM)
    weight = torch.ones(CEILING_DIM, CEILING_DIM)
    kernels = load_kernels()
    if kernels is None:
        dtype = torch.float32 if precision == "fp32" else torch.bfloat16
        half, matrix = x.to(dtype), weight.to(dtype)
        product = _best(lambda: functional.linear(half, matrix))
    else:
        packed = PackedLinear(kernels, weight, torch.zeros(CEILING_DIM), precision)
        out = torch.empty(CEILING_ROWS, CEILING_DIM)
        product = _best(lambda: packed(x, out))
    reading = _best(torch.ones(MEMORY_VALUES).sum)
    operations = 2 * CEILING_ROWS * CEILING_DIM**2
    return Ceilings(operations / product, 4 * MEMORY_VALUES / reading)


def _best(work: Callable[[], object], *, repeats: int = 5) -> float:
    """Return the shortest time, in seconds, after one run to warm up."""
    times = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times[1:])


def measure_speed(
    embedder: Embedder,
    sentences: Sequence[Sequence[str]],
    ceilings: Ceilings,
    *,
    sentences_at_once: int,
    seconds: float,
) -> Speed:
    """Embed batches of sentences, all layers, repeatedly for about ``seconds``.

    Build the embedder with ``word_cache=False``, so that words are not computed only once. Raises
    `ValueError` without sentences.
    """
    if not sentences:
        raise ValueError("`sentences` is empty: there is nothing to measure.")
    starts = range(0, len(sentences), sentences_at_once)
    batches = [list(sentences[start : start + sentences_at_once]) for start in starts]
    embedder.embed(batches[0])
    times, done = [], []
    deadline = time.perf_counter() + seconds
    while len(times) < 2 or time.perf_counter() < deadline:
        batch = batches[len(times) % len(batches)]
        start = time.perf_counter()
        embedder.embed(batch)
        times.append(time.perf_counter() - start)
        done.append(batch)
    tokens = [sum(len(sentence) + 2 for sentence in batch) for batch in done]
    rates = [count / taken for count, taken in zip(tokens, times, strict=True)]
    config = embedder.model.config
    width = {"fp32": 4, "bf16": 2, "int8": 1}[embedder.precision]
    operations = sum(count_operations(config, batch) for batch in done)
    steps = sum(max(len(sentence) for sentence in batch) + 2 for batch in done)
    recurrent = _recurrent_weights(config)
    if width * recurrent < CACHE_BYTES:
        steps = 0
    read = width * (steps * recurrent + len(done) * _other_weights(config))
    arithmetic = operations / sum(times) / ceilings.operations_per_second
    memory = read / sum(times) / ceilings.bytes_per_second
    median = statistics.median(rates)
    limit: Limit = "arithmetic" if arithmetic >= memory else "memory"
    return Speed(
        precision=embedder.precision,
        sentences_at_once=sentences_at_once,
        tokens_per_second=median,
        spread=float(np.subtract(*np.percentile(rates, (75, 25)))) / median,
        share_of_arithmetic=arithmetic,
        share_of_memory=memory,
        limit=limit if max(arithmetic, memory) >= BUSY else "other work",
    )


def count_operations(config: BiLMConfig, sentences: Sequence[Sequence[str]]) -> int:
    """Count the additions and multiplications in all products.

    Each distinct word goes through the token layer once; convolutions count real characters only.
    """
    words = {word for sentence in sentences for word in sentence}
    num_tokens = sum(len(sentence) + 2 for sentence in sentences)
    lstm = config.lstm
    gates = 4 * lstm.cell_dim * lstm.projection_dim
    operations = 2 * 2 * num_tokens * lstm.num_layers * gates  # inputs, two directions
    operations += 2 * num_tokens * _recurrent_weights(config)
    cnn = config.char_cnn
    if cnn is None:
        return operations
    filters, dim = cnn.num_filters, lstm.projection_dim
    projection = filters * dim if filters != dim else 0
    operations += 2 * (len(words) + 2) * (cnn.num_highway * 2 * filters**2 + projection)
    ids = CharVocab(config.char_vocab).encode_words(sorted(words))
    num_characters = int((ids != PADDING_ID).sum())
    window = sum(width * count for width, count in cnn.filters)
    return operations + 2 * num_characters * window * cnn.embedding_dim


def _recurrent_weights(config: BiLMConfig) -> int:
    """Count the weights that every step reads."""
    lstm = config.lstm
    projection = lstm.cell_dim * lstm.projection_dim if lstm.projection_dim != lstm.cell_dim else 0
    return 2 * lstm.num_layers * (4 * lstm.cell_dim * lstm.projection_dim + projection)


def _other_weights(config: BiLMConfig) -> int:
    """Count the weights that a batch reads once."""
    lstm, cnn = config.lstm, config.char_cnn
    weights = 2 * lstm.num_layers * 4 * lstm.cell_dim * lstm.projection_dim
    if cnn is not None:
        window = sum(width * count for width, count in cnn.filters) * cnn.embedding_dim
        per_filter = cnn.num_highway * 2 * cnn.num_filters + lstm.projection_dim
        weights += window + cnn.num_filters * per_filter
    return weights


def sample_of(
    sentences: Sequence[Sequence[str]], *, max_sentences: int, seed: int = 0
) -> list[list[str]]:
    """Draw non-empty sentences at random, in text order."""
    kept = [list(sentence) for sentence in sentences if sentence]
    if len(kept) <= max_sentences:
        return kept
    chosen = np.random.default_rng(seed).choice(len(kept), max_sentences, replace=False)
    return [kept[k] for k in np.sort(chosen)]
