"""Makes the runs of a probe: one family of vectors, measured once."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from elmokit.embed.embedder import Embedder
from elmokit.experiments.plan import PlannedRun
from elmokit.experiments.probes import EXAMPLES, RANDOM, STATIC, Probe
from elmokit.experiments.runs.provenance import facts_of_making
from elmokit.experiments.runs.runner import CheckTime
from elmokit.experiments.runs.store import RunResult
from elmokit.probes.neighbors import Occurrence, nearest_occurrences, nearest_words
from elmokit.probes.vector_sources import VectorSource, layer_sources, static_source
from elmokit.vectors.vector_files import read_vectors

QUERY_WORD = "play"
QUERIES = (
    "Chico Ruiz made a spectacular play on Alusik 's grounder",
    "Olivia De Havilland signed to do a Broadway play for Garson",
)
"""Of table 4 in the paper; `QUERY_WORD` is in each."""
NUM_WORDS, NUM_SENTENCES, CONTEXT_WORDS = 10, 3, 8
NO_VECTOR = "no vector"
"""Shown where the static vectors lack the word: the rest of the table stands without them."""


class ProbeRuns:
    """Measures families of vectors; the data are read once.

    Args:
        probe: What is measured.
        data_dir: Folder of all data sets.
        work_dir: For samples.
        model: biLM directory.
        vectors: Static word vectors.
        cache_dir: Where layers are kept.
        on_status: Told now and then what is going on.
    """

    def __init__(
        self,
        probe: Probe,
        data_dir: Path,
        work_dir: Path,
        *,
        model: Path,
        vectors: Path,
        cache_dir: Path | None = None,
        on_status: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._probe, self._folder, self._work_dir = probe, data_dir / probe.dataset, work_dir
        self._model, self._vectors = model, vectors
        self._cache_dir, self._on_status = cache_dir, on_status
        self._data: Any = None

    def __call__(self, run: PlannedRun, check_time: CheckTime) -> RunResult:
        """Measure one family.

        Raises:
            OutOfTime: from ``check_time``, between sentences.
        """
        if self._data is None:
            samples = self._work_dir / "samples" / self._probe.dataset
            self._data = self._probe.read(self._folder, samples)
        started = time.monotonic()
        if run.condition == EXAMPLES:
            return self._examples(started, check_time)
        probe = self._probe
        measured = probe.measure(self._sources(run, check_time), self._data)
        scores = [
            {"name": one.name, **{name: getattr(one, name) for name in probe.columns}}
            for one in measured
        ]
        main = next(iter(probe.columns))
        seconds = time.monotonic() - started
        return RunResult(
            metric=probe.columns[main],
            value=max(score[main] for score in scores),
            details={"scores": scores},
            num_examples=len(getattr(self._data, "train", getattr(self._data, "training", ()))),
            seconds=seconds,
            wall_seconds=seconds,
            made=facts_of_making(),
            counts=np.stack([getattr(one, probe.counts) for one in measured]),
        )

    def _sources(self, run: PlannedRun, check_time: CheckTime) -> Sequence[VectorSource]:
        num_read = 0

        def on_sentence() -> None:
            nonlocal num_read
            num_read += 1
            self._on_status(f"layers of {num_read:,} sentences")
            check_time()

        if run.condition == STATIC:
            return [static_source(self._vectors, self._probe.words(self._data))]
        trained_or_not = layer_sources(
            str(self._model),
            random_seed=run.seed if run.condition == RANDOM else None,
            cache_dir=self._cache_dir,
            on_sentence=on_sentence,
        )
        return trained_or_not[-1:]

    def _examples(self, started: float, check_time: CheckTime) -> RunResult:
        """Return what is near to a word by static vectors, and to two of its occurrences."""
        examples = [
            {"source": "static", "query": QUERY_WORD, "nearest": _nearest_static(self._vectors)}
        ]
        embedder = Embedder.load(self._model)
        for query in QUERIES:
            check_time()
            self._on_status(f"neighbors of {QUERY_WORD!r} in context")
            tokens = tuple(query.split())
            found = nearest_occurrences(
                embedder,
                Occurrence(tokens, tokens.index(QUERY_WORD)),
                (sentence.tokens for sentence in self._data),
                num_neighbors=NUM_SENTENCES,
            )
            nearest = [one.marked(context=CONTEXT_WORDS) for one in found.neighbors]
            examples.append(
                {
                    "source": "biLM, top layer",
                    "query": found.occurrence.marked(),
                    "nearest": nearest,
                }
            )
        seconds = time.monotonic() - started
        return RunResult(
            metric="",
            value=0.0,
            details={"examples": examples},
            num_examples=len(self._data),
            seconds=seconds,
            wall_seconds=seconds,
            made=facts_of_making(),
        )


def _nearest_static(path: Path) -> list[str]:
    vectors = read_vectors(path)
    if QUERY_WORD not in vectors.words:
        return [NO_VECTOR]
    return [word for word, _ in nearest_words(vectors, QUERY_WORD, num_neighbors=NUM_WORDS)]
