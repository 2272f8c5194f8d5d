"""Measure how fast a model embeds on this machine, at every precision: `elmokit bench`."""

import random
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import as_file, files
from itertools import islice
from os import PathLike
from typing import get_args

from elmokit.corpus.readers import read_sentences
from elmokit.embed.embedder import Embedder
from elmokit.errors import FormatError
from elmokit.files.sources import Paths
from elmokit.inference.contexts import NUM_BOUNDARIES
from elmokit.inference.precision import Precision
from elmokit.kernels.build import origin
from elmokit.kernels.library import get_num_threads
from elmokit.text.tokenizers.registry import build_tokenizer, tokenizer_for_model
from elmokit.weights.stored_bilm import read_bilm

BATCHES = (1, 64)
"""Sentences per call."""
MAX_LINES_READ, MAX_SENTENCES = 2000, 512
"""Sentences read as a sample of the text, and how many of them are embedded."""


@dataclass(frozen=True)
class Speed:
    precision: Precision
    sentences_at_once: int
    tokens_per_second: float
    """Median over the batches; words and the two boundaries of each sentence."""


@dataclass(frozen=True)
class BenchReport:
    model: str
    threads: int
    computed_by: str
    """Prebuilt kernels, kernels compiled on this machine, or NumPy."""
    speeds: list[Speed]


def bench(
    model: str | PathLike[str],
    text: Paths | None = None,
    *,
    seconds: float = 5.0,
    tokenizer: str | None = None,
    on_progress: Callable[[int], object] = lambda done: None,
) -> BenchReport:
    """Measure tokens per second, one sentence and many at a time, at each precision.

    ``text`` should resemble the text to embed (default: the demo text). Each measurement takes
    ``seconds``; ``on_progress`` gets the number of finished ones, two per precision.
    """
    loaded = read_bilm(model)
    splitter = build_tokenizer(tokenizer_for_model(loaded.tokenizer, tokenizer))
    form = loaded.config.char_vocab.normalization
    with as_file(files("elmokit").joinpath("data/demo/en.txt")) as demo:
        stream = read_sentences(demo if text is None else text, splitter, normalization=form)
        sentences = list(islice(stream, MAX_LINES_READ))
    sample = random.Random(0).sample(sentences, min(len(sentences), MAX_SENTENCES))
    if not sample:
        raise FormatError(f"{text}: no words. Give a text that the model would embed.")
    speeds = []
    for precision in get_args(Precision):
        embedder = Embedder(loaded, device="cpu", precision=precision, word_cache=False)
        for size in BATCHES:
            batches = [sample[start : start + size] for start in range(0, len(sample), size)]
            embedder.embed(batches[0])
            rates: list[float] = []
            deadline = time.perf_counter() + seconds
            while len(rates) < 2 or time.perf_counter() < deadline:
                batch = batches[len(rates) % len(batches)]
                start = time.perf_counter()
                embedder.embed(batch)
                num_tokens = sum(len(sentence) + NUM_BOUNDARIES for sentence in batch)
                rates.append(num_tokens / (time.perf_counter() - start))
            speeds.append(Speed(precision, size, statistics.median(rates)))
            on_progress(len(speeds))
    return BenchReport(str(model), get_num_threads(), origin("inference"), speeds)
