"""The probes by name: data directory and model in, a score for each representation out."""

import logging
from collections.abc import Iterable, Sequence
from pathlib import Path

from elmokit.errors import InputError
from elmokit.inference.results import Layers
from elmokit.probes.data import (
    read_pos_data,
    read_sense_corpus,
    read_sense_data,
    read_wic_data,
)
from elmokit.probes.pos import PosScore, probe_pos
from elmokit.probes.sense_neighbors import NeighborScore, precision_at_k
from elmokit.probes.vector_sources import (
    LayerSource,
    OnSentence,
    VectorSource,
    layer_sources,
    static_source,
)
from elmokit.probes.word_in_context import WicScore, find_words, word_in_context
from elmokit.probes.wsd import WsdScore, disambiguate

log = logging.getLogger(__name__)

Score = PosScore | WsdScore | NeighborScore | WicScore
PROBES = ("pos", "wsd", "neighbors", "wic")


def run_probe(
    name: str,
    data: Path,
    model: str | None,
    *,
    layers: Layers | str = "all",
    random: bool = False,
    vectors: Path | None = None,
    test: str | None = None,
    seed: int = 0,
    precision: str = "fp32",
    cache_dir: Path | None = None,
    on_sentence: OnSentence | None = None,
) -> tuple[Score, ...]:
    """Run one probe on what `elmokit.probes.data` finds in a directory.

    Args:
        name: One of `PROBES`.
        data: The directory.
        model: Model directory; none: the model in the package.
        layers: ``"all"`` of them, each by itself; ``"top"``, ``"average"`` or one number.
        random: Also probe a biLM of the same shape with random weights.
        vectors: Also probe the static word vectors of this file.
        test: Of ``wsd``, the test set, if there are several.
        seed: Of the random weights, and of the sample of ``neighbors``.
        precision: Of the biLM.
        cache_dir: Where layers are kept, of ``pos``.
        on_sentence: Called after each sentence whose layers were computed.

    Returns:
        Baselines, if the probe has any, then one score a representation.

    Raises:
        FileNotFoundError: if a file or the model is missing.
        FormatError: if one is damaged.
        InputError: if there is no such probe, or an argument has none of its allowed values.
    """
    if name not in PROBES:
        raise InputError(f"There is no probe {name!r}; choose one of {', '.join(PROBES)}.")
    if test is not None and name != "wsd":
        raise InputError(f"A test set is chosen for wsd only; {name} has none to choose.")
    if cache_dir is not None and name != "pos":
        log.warning("layers are kept for pos only: a place for them has no effect on %s", name)
    layered = layer_sources(
        model,
        layers=layers,
        random_seed=seed if random else None,
        precision=precision,
        cache_dir=cache_dir,
        on_sentence=on_sentence,
    )
    if name == "pos":
        return _pos(data, layered, vectors)
    if name == "wsd":
        return _wsd(data, layered, vectors, test=test)
    if name == "neighbors":
        return _neighbors(data, layered, vectors, seed=seed)
    return _wic(data, layered, vectors)


def _pos(data: Path, layered: Sequence[LayerSource], vectors: Path | None) -> tuple[Score, ...]:
    read = read_pos_data(data)
    sentences = [one.tokens for one in (*read.train, *read.dev)]
    return probe_pos(_with_static(layered, vectors, sentences), read.train, read.dev)


def _wsd(
    data: Path, layered: Sequence[LayerSource], vectors: Path | None, *, test: str | None
) -> tuple[Score, ...]:
    read = read_sense_data(data, test=test)
    sources = _with_static(layered, vectors, [one.tokens for one in (*read.training, *read.test)])
    return disambiguate(sources, read.training, read.test, read.inventory)


def _neighbors(
    data: Path, layered: Sequence[LayerSource], vectors: Path | None, *, seed: int
) -> tuple[Score, ...]:
    corpus = read_sense_corpus(data)
    sources = _with_static(layered, vectors, [one.tokens for one in corpus])
    return precision_at_k(sources, corpus, seed=seed)


def _wic(data: Path, layered: Sequence[LayerSource], vectors: Path | None) -> tuple[Score, ...]:
    read = read_wic_data(data)
    tokenize = layered[0].embedder.tokenizer.tokenize
    train, dev = (find_words(pairs, tokenize) for pairs in (read.train, read.dev))
    return word_in_context(
        _with_static(layered, vectors, (*train.sentences, *dev.sentences)), train, dev
    )


def _with_static(
    layered: Sequence[LayerSource], vectors: Path | None, sentences: Iterable[Sequence[str]]
) -> list[VectorSource]:
    """Return the sources, and that of the static vectors of these words if there is one."""
    if vectors is None:
        return list(layered)
    return [*layered, static_source(vectors, {word for words in sentences for word in words})]
