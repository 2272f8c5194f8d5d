"""What a probe is, and running one: data directory and model in, a score per representation out."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from elmokit.errors import InputError
from elmokit.evaluation.text_scorer import StartState
from elmokit.inference.results import Layers
from elmokit.metrics.significance import Counts, ScoreFunction
from elmokit.probes.registry import find_probe
from elmokit.probes.vector_sources import OnSentence, VectorSource, layer_sources, static_source
from elmokit.tasks.inputs.word_units import TREEBANK_UNITS, usual_units, warn_of_units
from elmokit.tasks.task import Units
from elmokit.text.given_sentences import Tokenize
from elmokit.vectors.vector_files import VectorsReference

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Figure:
    """A number of a score that follows from its counts, so that differences can be tested."""

    name: str
    """Field of the score."""
    score: ScoreFunction
    """From summed counts to the number."""
    part: slice = field(default_factory=lambda: slice(None))
    """The columns of the counts that it follows from."""

    def counts(self, counts: Counts) -> Counts:
        """Return the counts behind this number, of the units that have any."""
        own = counts[:, self.part]
        return own[own.any(axis=1)]


@dataclass(frozen=True, kw_only=True)
class Probe:
    """What is measured of each representation, and how it is shown.

    Files are a dataclass of paths; data is whatever `read` returns, with its training examples as
    ``train``.
    """

    find: Callable[[Path, str | None], Any]
    """Finds the files in a directory; the second argument is the name of a test set, if any.
    Raises `FileNotFoundError` and `InputError`.
    """
    read: Callable[[Any, Tokenize, Units], Any]
    """Reads the files; the second argument splits raw text, the third is the unit of tokens."""
    words: Callable[[Any], set[str]]
    """Returns all words of the data, for static vectors."""
    measure: Callable[[Sequence[VectorSource], Any, int, str], tuple[Any, ...]]
    """Returns baselines, if any, then a score per representation; the last arguments are a seed and
    the device of classifiers.
    """
    columns: Mapping[str, str]
    """Score fields in tables, with their titles; None where a score has no such number."""
    note: str
    """Explains the numbers; a format string with the fields of a score."""
    counts: str
    """Field with the counts behind the figures: a row for each unit, such as a sentence."""
    figures: tuple[Figure, ...]
    """Columns that follow from the counts; the first is the main number."""
    has_test_sets: bool = False
    """The files have a `test` with a `name`."""
    has_units: bool = False
    """The data can be read by words or by morphemes."""
    is_tokenized: bool = False
    """The words are those of the data, not the tokenizer's."""
    keeps_layers: bool = False
    """Layers are read repeatedly and cached on disk."""


@dataclass(frozen=True)
class ProbeResult:
    """What a probe measured."""

    scores: tuple[Any, ...]
    """Baselines, if the probe has any, then a score per representation."""
    metadata: dict[str, Any]
    """Of the biLM's vectors, as `Embedder.metadata` has it, and what else decides the scores."""


def run_probe(
    name: str,
    data: Path,
    model: str | None,
    *,
    layers: Layers | str = "all",
    random: bool = False,
    vectors: Path | None = None,
    test: str | None = None,
    units: Units | str | None = None,
    seed: int = 0,
    state: StartState | str = "reset",
    device: str = "auto",
    precision: str = "fp32",
    cache_dir: Path | None = None,
    on_sentence: OnSentence | None = None,
) -> ProbeResult:
    """Run one probe on the data of a directory.

    ``random`` also probes a biLM of the same shape with random weights, ``vectors`` the static word
    vectors of a file. ``seed`` is that of the random weights and of the sample of ``neighbors``,
    ``test`` the test set of ``wsd``, ``device`` that of layers and classifiers, ``cache_dir`` a
    cache of layers for ``pos``. ``units`` is what a token of ``pos`` is, by default what the
    model's tokenizer makes (`usual_units`). For the other arguments see `layer_sources`.

    Raises:
        FileNotFoundError: if a file or the model is missing.
        FormatError: if one is damaged.
        InputError: if there is no such probe, or an argument is not allowed.
    """
    probe: Probe = find_probe(name)
    if test is not None and not probe.has_test_sets:
        raise InputError(f"The probe {name} has no test sets to choose from.")
    if cache_dir is not None and not probe.keeps_layers:
        log.warning("a cache of layers has no effect on %s", name)
    if units is not None and not probe.has_units:
        raise InputError(f"The probe {name} has no units to choose from.")
    chosen: Units | None = None if units is None else _check_units(units)
    layered = layer_sources(
        model, layers=layers, random_seed=seed if random else None, state=state, device=device,
        precision=precision, cache_dir=cache_dir, on_sentence=on_sentence,
    )  # fmt: skip
    tokenizer = layered[0].embedder.tokenizer
    files = probe.find(data, test)
    if chosen is None:
        chosen = usual_units(files.train, tokenizer) if probe.has_units else "words"
        if chosen == "morphemes":
            log.info("%s is read by morphemes, as the model's tokenizer splits text", data)
    found = probe.read(files, tokenizer.tokenize, chosen)
    if probe.is_tokenized:
        sentences = getattr(found, "train", found)
        words = (word for sentence in sentences for word in sentence.tokens)
        option = "--units morphemes" if probe.has_units else ""
        warn_of_units(data, words, chosen, tokenizer, has_bilm=True, option=option)
    sources: list[VectorSource] = [*layered]
    if vectors is not None:
        sources.append(static_source(vectors, probe.words(found)))
    first = layered[0]
    metadata = first.embedder.metadata(layers=first.layers, state=first.state)
    del metadata["dtype"]  # layers that are kept are float16
    chosen_by = {
        "seed": seed,
        "test": files.test.name if probe.has_test_sets else None,
        "units": chosen if probe.has_units else None,
    }
    if vectors is not None:
        chosen_by["vectors_sha256"] = VectorsReference.of(vectors).sha256
    return ProbeResult(probe.measure(sources, found, seed, device), metadata | chosen_by)


def _check_units(units: str) -> Units:
    if units not in TREEBANK_UNITS:
        raise InputError(f"units={units!r}: choose one of {', '.join(TREEBANK_UNITS)}.")
    return units  # pyright: ignore[reportReturnType]


def plain_score(score: Any) -> dict[str, Any]:
    """Return the fields of a score for JSON, without its counts."""
    return {one.name: getattr(score, one.name) for one in fields(score) if one.repr}


def words_of(*parts: Sequence[Any]) -> set[str]:
    """Return the words of sentences with ``tokens``."""
    return {word for sentences in parts for sentence in sentences for word in sentence.tokens}
