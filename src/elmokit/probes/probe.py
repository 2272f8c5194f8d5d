"""What a probe is, and running one: data directory and model in, a score per representation out."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmokit.errors import InputError
from elmokit.inference.results import Layers
from elmokit.metrics.significance import ScoreFunction
from elmokit.probes.registry import find_probe
from elmokit.probes.vector_sources import OnSentence, VectorSource, layer_sources, static_source

log = logging.getLogger(__name__)

Tokenize = Callable[[str], list[str]]


@dataclass(frozen=True, kw_only=True)
class Probe:
    """What is measured of each representation, and how it is shown.

    Files are a dataclass of paths; data is whatever `read` returns, with its training examples as
    ``train``.
    """

    find: Callable[[Path, str | None], Any]
    """Finds the files in a directory; the second argument names a test set, if there are several.
    Raises `FileNotFoundError` and `InputError`."""
    read: Callable[[Any, Tokenize], Any]
    """Reads the files. Raw text is split by the second argument."""
    words: Callable[[Any], set[str]]
    """Returns all words of the data, which may need a static vector."""
    measure: Callable[[Sequence[VectorSource], Any, int], tuple[Any, ...]]
    """Returns baselines, if any, then a score per representation. The last argument is a seed."""
    columns: Mapping[str, str]
    """Fields of a score that tables show, with their titles; the first is the main number."""
    note: str
    """Explains the numbers; a format string with the fields of a score."""
    counts: str
    """Field with the counts behind the main number."""
    score: ScoreFunction
    """From summed counts to the main number."""
    has_test_sets: bool = False
    keeps_layers: bool = False
    """The layers of a biLM are read repeatedly and cached on disk."""


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
) -> tuple[Any, ...]:
    """Run one probe on what it finds in a directory.

    Args:
        name: As in `elmokit.probes.registry`.
        data: The directory.
        model: Model directory; none: the model in the package.
        layers: ``"all"`` of them, each by itself; ``"top"``, ``"average"`` or one number.
        random: Also probe a biLM of the same shape with random weights.
        vectors: Also probe the static word vectors of this file.
        test: The test set of ``wsd``, if there are several.
        seed: Of the random weights, and of the sample of ``neighbors``.
        precision: Of the biLM.
        cache_dir: Cache of layers for ``pos``.
        on_sentence: Called after each sentence whose layers were computed.

    Returns:
        Baselines, if the probe has any, then a score per representation.

    Raises:
        FileNotFoundError: if a file or the model is missing.
        FormatError: if one is damaged.
        InputError: if there is no such probe, or an argument has none of its allowed values.
    """
    probe = find_probe(name)
    if test is not None and not probe.has_test_sets:
        raise InputError(f"The probe {name} has no test sets to choose from.")
    if cache_dir is not None and not probe.keeps_layers:
        log.warning("a cache of layers has no effect on %s", name)
    layered = layer_sources(
        model,
        layers=layers,
        random_seed=seed if random else None,
        precision=precision,
        cache_dir=cache_dir,
        on_sentence=on_sentence,
    )
    found = probe.read(
        probe.find(data, test), lambda text: layered[0].embedder.tokenizer.tokenize(text)
    )
    sources: list[VectorSource] = [*layered]
    if vectors is not None:
        sources.append(static_source(vectors, probe.words(found)))
    return probe.measure(sources, found, seed)


def words_of(*parts: Sequence[Any]) -> set[str]:
    """Return the words of sentences with ``tokens``."""
    return {word for sentences in parts for sentence in sentences for word in sentence.tokens}
