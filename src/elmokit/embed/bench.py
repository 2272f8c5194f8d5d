"""Measure how fast a model embeds on this machine, at every precision: `elmokit bench`."""

import logging
import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import as_file, files
from itertools import islice
from os import PathLike
from typing import get_args

from elmokit.corpus.readers import read_sentences
from elmokit.embed.embedder import Embedder
from elmokit.errors import FormatError, InputError
from elmokit.files import sources
from elmokit.files.remote import AnyFile
from elmokit.inference.batching import NUM_BOUNDARIES
from elmokit.inference.precision import Precision
from elmokit.kernels.build import origin
from elmokit.kernels.threads import get_num_threads
from elmokit.text.tokenizers.registry import build_tokenizer, tokenizer_for_model
from elmokit.weights.stored_bilm import read_bilm

log = logging.getLogger(__name__)

BATCHES = (1, 64)
"""Sentences per call."""
MAX_LINES_READ, MAX_SENTENCES = 2000, 512
"""Sentences read as a sample of the text, and how many of them are embedded."""


@dataclass(frozen=True)
class Speed:
    """One measurement."""

    precision: Precision
    sentences_at_once: int
    tokens_per_second: float
    """Median over the batches; words and the two boundaries of each sentence."""


@dataclass(frozen=True)
class CorpusEstimate:
    """How long the whole text would take."""

    num_bytes: int
    tokens: int
    """Words and sentence boundaries, estimated from a sample at the start."""
    hours: dict[str, float]
    """By precision, at the speed of the larger batch without a word cache."""


@dataclass(frozen=True)
class BenchReport:
    """All measurements."""

    model: str
    threads: int
    computed_by: str
    """Prebuilt kernels, kernels compiled on this machine, or PyTorch."""
    speeds: list[Speed]
    corpus: CorpusEstimate | None
    """None without a text, or if it is not plain text."""


def bench(
    model: str | PathLike[str],
    text: sources.Paths | None = None,
    *,
    seconds: float = 5.0,
    tokenizer: str | None = None,
    on_progress: Callable[[int], object] = lambda done: None,
) -> BenchReport:
    """Measure tokens per second, one sentence and many at a time, at each precision.

    ``text`` should resemble the text to embed (default: the demo text). Each measurement takes
    ``seconds``; ``on_progress`` gets the number of finished ones, two per precision.
    """
    text_files = [] if text is None else sources.find_files(text)
    if pipes := [path for path in text_files if sources.is_read_once(path)]:
        raise InputError(f"{pipes[0]} can be read only once; the text is read twice. Give files.")
    loaded = read_bilm(model)
    splitter = build_tokenizer(tokenizer_for_model(loaded.tokenizer, tokenizer))
    form = loaded.config.char_vocab.normalization
    with as_file(files("elmokit").joinpath("data/demo/en.txt")) as demo:
        stream = read_sentences(demo if text is None else text, splitter, normalization=form)
        sentences = list(islice(stream, MAX_LINES_READ))
    sample = random.Random(0).sample(sentences, min(len(sentences), MAX_SENTENCES))
    if not sample:
        raise FormatError(
            f"{', '.join(map(str, text_files))}: no words. Give a text that the model would embed."
        )
    speeds = []
    for precision in get_args(Precision):
        embedder = Embedder(loaded, device="cpu", precision=precision, word_cache=False)
        for size in BATCHES:
            batches = [sample[start : start + size] for start in range(0, len(sample), size)]
            speeds.append(Speed(precision, size, _tokens_per_second(embedder, batches, seconds)))
            on_progress(len(speeds))
    corpus = _estimate(text_files, sentences, speeds) if text_files else None
    return BenchReport(str(model), get_num_threads(), origin("inference"), speeds, corpus)


def _tokens_per_second(
    embedder: Embedder, batches: Sequence[list[list[str]]], seconds: float
) -> float:
    """Return the median rate of embedding batches in turn for about ``seconds``."""
    embedder.embed(batches[0])
    rates: list[float] = []
    deadline = time.perf_counter() + seconds
    while len(rates) < 2 or time.perf_counter() < deadline:
        batch = batches[len(rates) % len(batches)]
        start = time.perf_counter()
        embedder.embed(batch)
        num_tokens = sum(len(sentence) + NUM_BOUNDARIES for sentence in batch)
        rates.append(num_tokens / (time.perf_counter() - start))
    return statistics.median(rates)


def _estimate(
    paths: Sequence[AnyFile], sentences: Sequence[Sequence[str]], speeds: Sequence[Speed]
) -> CorpusEstimate | None:
    kinds = {path: kind for path in paths if (kind := sources.file_kind(path)) != "text"}
    if kinds:
        path, kind = next(iter(kinds.items()))
        log.warning("%s is %s: how much text it holds, and so the hours, are unknown", path, kind)
        return None
    num_bytes = 0
    for path in paths:
        is_compressed = path.suffix.lower() in sources.COMPRESSIONS
        size = None if is_compressed else sources.file_size(path)
        num_bytes += sum(map(len, sources.read_pieces(path))) if size is None else size
    sample_bytes = sum(len(" ".join(sentence).encode()) + 1 for sentence in sentences)
    sample_tokens = sum(len(sentence) + 2 for sentence in sentences)
    tokens = round(num_bytes * sample_tokens / sample_bytes)
    hours: dict[str, float] = {
        speed.precision: tokens / speed.tokens_per_second / 3600
        for speed in speeds
        if speed.sentences_at_once == max(BATCHES)
    }
    return CorpusEstimate(num_bytes, tokens, hours)
