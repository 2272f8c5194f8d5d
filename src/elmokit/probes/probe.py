"""What a probe is, and running one: data directory and model in, a score per representation out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, cast

import numpy as np

from elmokit.errors import InputError, check_choice
from elmokit.files.json_files import jsonable
from elmokit.metrics.bootstrap import Counts, RunCounts, ScoreFunction, bootstrap_gain
from elmokit.probes.inputs import (
    TRAINED,
    UNTRAINED,
    VectorSource,
    layer_sources,
    static_source,
)
from elmokit.probes.registry import find_probe
from elmokit.tasks.task import TreebankUnits, Units
from elmokit.vectors.vector_files import VectorsReference


@dataclass(frozen=True)
class Figure:
    """A number of a score that follows from its counts, so that differences can be tested."""

    name: str
    score: ScoreFunction
    part: slice = field(default_factory=lambda: slice(None))
    """The columns of the counts that it follows from."""

    def counts(self, counts: Counts) -> Counts:
        """Return the counts behind this number, of the units that have any."""
        own = counts[:, self.part]
        return own[own.any(axis=1)]


@dataclass(frozen=True, kw_only=True)
class Probe:
    """What is measured of each representation, and how it is shown.

    Data is whatever `read` returns, with its training examples as ``train`` if it has others.
    """

    read: Callable[[Path, str | None, Units], Any]
    """Reads a directory, given the name of a test set, if any, and the unit of tokens."""
    words: Callable[[Any], set[str]]
    """Returns all words of the data, for static vectors."""
    measure: Callable[[Sequence[VectorSource], Any, int], tuple[Any, ...]]
    """Returns baselines, if any, then a score per representation; the last argument is a seed."""
    columns: Mapping[str, str]
    """Score fields in tables, with their titles; None where a score has no such number."""
    note: str
    """Explains the numbers; a format string with the fields of a score."""
    counts: str
    """Field with the counts behind the figures: a row for each unit, such as a sentence."""
    figures: tuple[Figure, ...]
    """Columns that follow from the counts; the first is the main number."""
    has_test_sets: bool = False
    has_units: bool = False


@dataclass(frozen=True)
class ProbeResult:
    scores: tuple[Any, ...]
    metadata: dict[str, Any]


def run_probe(
    name: str,
    data: Path,
    model: str | None,
    *,
    random: bool = False,
    vectors: Path | None = None,
    test: str | None = None,
    units: Units | str | None = None,
    seed: int = 0,
    **options: Any,
) -> ProbeResult:
    """Run one probe on the data of a directory.

    ``random`` also probes a biLM of the same shape with random weights, ``vectors`` the static word
    vectors of a file. ``seed`` is that of the random weights and of the sample of ``neighbors``,
    ``test`` the test set of ``wsd``, ``units`` what a token of ``pos`` is, by default what the
    model's tokenizer makes. ``options`` are those of `layer_sources`.
    """
    probe: Probe = find_probe(name)
    for option, value, is_used in (
        ("test", test, probe.has_test_sets), ("units", units, probe.has_units),
    ):  # fmt: skip
        if value is not None and not is_used:
            raise InputError(f"The probe {name} has no {option} to choose from, got {value!r}.")
    if units is not None:
        check_choice(units, TreebankUnits, name="units")
    random_seed = seed if random else None
    layered = layer_sources(model, random_seed=random_seed, **options)
    first = layered[0]
    if units is None:
        makes_morphemes = first.embedder.tokenizer.name == "korean" and probe.has_units
        units = "morphemes" if makes_morphemes else "words"
    examples = probe.read(data, test, cast(Units, units))
    sources: list[VectorSource] = [*layered]
    if vectors is not None:
        sources.append(static_source(vectors, probe.words(examples)))
    metadata = first.embedder.metadata(layers=first.layers, state=first.state)
    del metadata["dtype"]  # some probes read float16
    test = examples.test_name if probe.has_test_sets else None
    metadata |= {"seed": seed, "test": test, "units": units if probe.has_units else None}
    if vectors is not None:
        metadata["vectors_sha256"] = VectorsReference.of(vectors).sha256
    return ProbeResult(probe.measure(sources, examples, seed), metadata)


def plain_score(score: Any) -> dict[str, Any]:
    """Return a score as JSON has it: what it has no number for is None."""
    return jsonable({part.name: getattr(score, part.name) for part in fields(score) if part.repr})


def words_of(*parts: Sequence[Any]) -> set[str]:
    return {word for sentences in parts for sentence in sentences for word in sentence.tokens}


@dataclass(frozen=True, kw_only=True)
class TrainingGain:
    """What training gave a layer: its score minus that of the same layer untrained, in points."""

    name: str
    untrained: str
    figure: str
    difference: float
    low: float | None
    """Lower end of the interval (`bootstrap.CONFIDENCE`); none: it has no ends."""
    high: float | None
    num_units: int
    """What was drawn: sentences of a test set, documents of SemCor, lemmas, pairs."""

    @property
    def interval(self) -> str:
        if self.low is None or self.high is None:
            return "–"
        return f"[{self.low:+.2f}, {self.high:+.2f}]"


def training_gains(probe: Probe, counts: Mapping[str, Sequence[Counts]]) -> list[TrainingGain]:
    """Return the gains of all layers with an untrained counterpart.

    ``counts`` has those of each representation, one for each seed of random weights. The intervals
    are over units, and over these seeds if there are several; the trained biLM is no draw of seeds.
    """
    gains = []
    for name, own in counts.items():
        first, _, layer = name.partition(" ")
        untrained = f"{UNTRAINED} {layer}"
        if first != TRAINED or untrained not in counts:
            continue
        for figure in probe.figures:
            new, reference = (
                np.stack([figure.counts(run) for run in side]) for side in (own, counts[untrained])
            )
            test = bootstrap_gain(
                RunCounts(new, reference, new_is_fixed=True), score=figure.score, seed=0
            )
            gains.append(TrainingGain(
                name=name, untrained=untrained, figure=figure.name, difference=test.difference,
                low=test.low, high=test.high, num_units=new.shape[1],
            ))  # fmt: skip
    return gains
