"""Executes probe runs; each measures one family of vectors."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from elmokit.embed.embedder import Embedder
from elmokit.experiments.plan import PlannedRun
from elmokit.experiments.probe_plan import EXAMPLES, RANDOM, STATIC, ProbeSettings
from elmokit.experiments.runs.provenance import provenance
from elmokit.experiments.runs.run_queue import CheckTime
from elmokit.experiments.runs.store import RunResult
from elmokit.probes.data import find_sense_inventory
from elmokit.probes.neighbors import Occurrence, nearest_words
from elmokit.probes.probe import plain_score
from elmokit.probes.sense_examples import (
    neighbors_of_query,
    occurrences_in_senses,
    queries_of,
)
from elmokit.probes.vector_sources import VectorSource, layer_sources, static_source
from elmokit.tasks.formats.senses import read_sense_inventory
from elmokit.vectors.vector_files import read_vectors

QUERY_WORD = "play"
"""The word of table 4 of the paper."""
NUM_WORDS, NUM_SENTENCES, CONTEXT_WORDS = 10, 3, 8
NO_VECTOR = "no vector"
"""Shown if `QUERY_WORD` has no static vector."""


@dataclass(kw_only=True)
class ProbeRuns:
    """Measures families of vectors; reads the data only once."""

    settings: ProbeSettings
    data_dir: Path
    """Folder of all data sets."""
    work_dir: Path
    """Folder for samples."""
    model: Path
    """biLM directory."""
    vectors: Path
    """Static word vectors."""
    device: str = "auto"
    """Device for biLMs and classifiers, as in `run_probe`."""
    cache_dir: Path | None = None
    """Cache for layers."""
    on_status: Callable[[str], None] = lambda text: None
    """Called with the current activity."""
    _data: Any = field(default=None, init=False)

    def __call__(self, run: PlannedRun, check_time: CheckTime) -> RunResult:
        """Measure one family; `OutOfTime` may come from ``check_time``, between sentences."""
        if self._data is None:
            samples = self.work_dir / "samples" / self.settings.data.name
            self._data = self.settings.read(self.data_dir, samples)
        started = time.monotonic()
        if run.condition == EXAMPLES:
            return self._examples(started, check_time)
        probe = self.settings.probe
        sources = self._sources(run, check_time)
        measured = probe.measure(sources, self._data, 0, self.device)
        scores = [plain_score(one) for one in measured]
        main = probe.figures[0].name
        own = {name for source in sources for name in source.names}  # not a baseline
        seconds = time.monotonic() - started
        return RunResult(
            metric=probe.columns[main],
            value=max(score[main] for score in scores if score["name"] in own),
            details={"scores": scores}, num_examples=len(getattr(self._data, "train", ())),
            seconds=seconds, wall_seconds=seconds, made=provenance(self.device),
            counts=np.stack([getattr(one, probe.counts) for one in measured]),
        )  # fmt: skip

    def _sources(self, run: PlannedRun, check_time: CheckTime) -> Sequence[VectorSource]:
        num_read = 0

        def on_sentence() -> None:
            nonlocal num_read
            num_read += 1
            self.on_status(f"layers of {num_read:,} sentences")
            check_time()

        if run.condition == STATIC:
            return [static_source(self.vectors, self.settings.probe.words(self._data))]
        seed = run.seed if run.condition == RANDOM else None
        sources = layer_sources(
            str(self.model), random_seed=seed, device=self.device, cache_dir=self.cache_dir,
            on_sentence=on_sentence,
        )  # fmt: skip
        return sources[-1:]

    def _examples(self, started: float, check_time: CheckTime) -> RunResult:
        """Return static neighbors of a word, and neighbors of it in two senses."""
        examples = [
            {"source": "static", "query": QUERY_WORD, "nearest": _nearest_static(self.vectors)}
        ]
        embedder = Embedder.load(self.model, device=self.device)
        occurrences = occurrences_in_senses(self._data, QUERY_WORD)
        shown: list[Occurrence] = []
        nouns = occurrences_in_senses(self._data, QUERY_WORD, pos="NOUN")
        for query in queries_of(nouns, QUERY_WORD):
            check_time()
            self.on_status(f"neighbors of {QUERY_WORD!r} in context")
            found = neighbors_of_query(embedder, query, occurrences, num_neighbors=NUM_SENTENCES)
            examples.append({
                "source": "biLM, top layer", "query": _with_sense(query),
                "nearest": [_with_sense(one, CONTEXT_WORDS) for one in found.neighbors],
            })  # fmt: skip
            shown += [query, *found.neighbors]
        seconds = time.monotonic() - started
        return RunResult(
            metric="", value=0.0, details={"examples": examples, "glosses": self._glosses(shown)},
            num_examples=len(self._data), seconds=seconds, wall_seconds=seconds,
            made=provenance(self.device),
        )  # fmt: skip

    def _glosses(self, shown: Sequence[Occurrence]) -> dict[str, str]:
        """Return the glosses of the senses that are shown."""
        folder = self.data_dir / self.settings.data.name
        inventory = read_sense_inventory(find_sense_inventory(folder))
        keys = dict.fromkeys(key for one in shown for key in one.sense.split())
        glosses = {
            sense.sense_key: sense.gloss
            for pos in ("NOUN", "VERB")
            for sense in inventory.senses(QUERY_WORD, pos)
        }
        return {key: glosses[key] for key in keys if key in glosses}


def _with_sense(one: Occurrence, context: int | None = None) -> str:
    return f"{one.marked(context=context)} ({one.sense})"


def _nearest_static(path: Path) -> list[str]:
    vectors = read_vectors(path)
    if QUERY_WORD not in vectors.words:
        return [NO_VECTOR]
    return [word for word, _ in nearest_words(vectors, QUERY_WORD, num_neighbors=NUM_WORDS)]
