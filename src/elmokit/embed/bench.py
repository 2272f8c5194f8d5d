"""Measure how fast a model embeds on this machine: `elmokit bench`."""

import logging
import time
from collections.abc import Sequence
from itertools import cycle, islice
from os import PathLike

from elmokit.corpus.readers import read_sentences
from elmokit.embed.embedder import Embedder
from elmokit.errors import FormatError
from elmokit.files.sources import Paths
from elmokit.inference.device import check_precision
from elmokit.kernels.library import load_kernels
from elmokit.text.tokenizers.registry import build_tokenizer
from elmokit.weights.stored_bilm import read_bilm

log = logging.getLogger(__name__)


def bench(
    model: str | PathLike[str], text: Paths, precisions: Sequence[str], *, seconds: float
) -> dict[str, float]:
    """Return words a second by precision on the CPU, without tokenizing and the word cache.

    Without compiled kernels only fp32 is measured.
    """
    stored, speeds = read_bilm(model), dict[str, float]()
    form, splitter = stored.config.char_vocab.normalization, build_tokenizer(stored.tokenizer)
    sample = list(islice(read_sentences(text, splitter, normalization=form), 1024))
    if not sample:
        raise FormatError(f"{text}: no words. Give a text that the model would embed.")
    for precision in map(check_precision, precisions):
        if precision != "fp32" and not load_kernels():
            log.warning("%s is not measured: it needs the compiled kernels", precision)
            continue
        embedder = Embedder(stored, device="cpu", precision=precision, word_cache=False)
        batches = cycle(sample[start : start + 64] for start in range(0, len(sample), 64))
        embedder.embed(next(batches))  # warms up
        num_words, begin, taken = 0, time.perf_counter(), 0.0
        while taken < seconds:
            num_words += sum(vectors.shape[1] for vectors in embedder.embed(next(batches)))
            taken = time.perf_counter() - begin
        speeds[precision] = num_words / taken
    return speeds
