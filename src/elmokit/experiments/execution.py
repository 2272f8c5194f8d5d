"""Executes runs: trains and scores task models, measures families of vectors with a probe."""

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from elmokit.config import from_dict
from elmokit.embed.embedder import Embedder
from elmokit.errors import FormatError
from elmokit.experiments.definitions import (
    EXAMPLES,
    RANDOM,
    STATIC_VECTORS,
    ProbeSettings,
    TaskSettings,
)
from elmokit.experiments.inputs import (
    HashedFile,
    RunFiles,
    read_probe_data,
    sample_file,
    write_run_files,
)
from elmokit.experiments.plan import ID_LENGTH, PlannedRun
from elmokit.experiments.runs import FileScore, RunResult, RunStore, provenance
from elmokit.files.temporary import remove_whole
from elmokit.jobs.job import checkpoints_of
from elmokit.jobs.metrics_log import METRICS_FILE, read_log
from elmokit.probes.data import SplitFiles, find_sense_inventory
from elmokit.probes.layer_weights import read_layer_weights
from elmokit.probes.neighbors import Occurrence, nearest_words
from elmokit.probes.probe import plain_score
from elmokit.probes.sense_neighbors import neighbors_of_query, occurrences_in_senses, queries_of
from elmokit.probes.vector_sources import VectorSource, layer_sources, static_source
from elmokit.tasks.formats.senses import read_sense_inventory
from elmokit.tasks.runs.config import TaskRunConfig
from elmokit.tasks.runs.run_dir import read_metadata
from elmokit.tasks.runs.task_run import TaskRun
from elmokit.tasks.runs.train_task import train_task
from elmokit.tasks.runs.training import EpochReport
from elmokit.vectors.vector_files import read_vectors

QUERY_WORD = "play"
"""The word of table 4 of the paper."""
NUM_WORDS, NUM_SENTENCES, CONTEXT_WORDS = 10, 3, 8
NO_VECTOR = "no vector"
"""Shown if `QUERY_WORD` has no static vector."""

OnWork = Callable[[str], None]
"""Gets the current activity of a run, at every point where the run may be stopped by raising."""


@dataclass(frozen=True, kw_only=True)
class Resources:
    """What all runs of an experiment use."""

    store: RunStore
    samples_dir: Path
    model: Path
    """biLM directory."""
    vectors: Path
    """Static word vectors, an input in every condition; stored models do not repeat them."""
    device: str = "auto"
    """Device of task models, biLMs and classifiers."""
    cache_dir: Path | None = None
    """Cache for layers."""
    on_work: OnWork = lambda text: None


@dataclass(kw_only=True)
class TaskRuns:
    """Trains task models.

    The held-out part of the training set chooses the epoch and ends the training; the dev set is
    scored once, with the weights of that epoch.
    """

    resources: Resources
    tasks: Mapping[str, TaskSettings]
    """By data set."""
    files: Mapping[str, SplitFiles]
    """By data set."""
    test_files: Mapping[str, HashedFile]
    """By data set; may be empty."""
    _run_files: dict[str, RunFiles] = field(default_factory=dict, init=False)

    def execute(self, run: PlannedRun) -> RunResult:
        """Train, from the beginning or the last checkpoint, and score."""
        started, use = time.monotonic(), self.resources
        run_dir = use.store.run_dir(run)
        config = from_dict(TaskRunConfig, run.metadata["config"], source=run.describe())

        def on_epoch(report: EpochReport) -> None:
            use.on_work(f"epoch {report.epoch}, held-out part {report.dev.value:.2f}")

        def on_layers(done: int, total: int) -> None:
            use.on_work(f"layers of {done:,} of {total:,} sentences")

        files = self._files_of(run)
        # a directory without one is what a kill left before the first epoch ended
        has_checkpoint = checkpoints_of(run_dir).latest is not None
        if run_dir.exists() and not has_checkpoint:
            remove_whole(run_dir)
        trained = train_task(
            config, files.train, files.held_out, run_dir, test_path=files.dev,
            model=str(use.model), vectors=use.vectors, device=use.device, cache_dir=use.cache_dir,
            keep_static=False, save_on_signals=True, resume=has_checkpoint,
            on_epoch=on_epoch, on_layers=on_layers,
        )  # fmt: skip
        assert trained.test is not None  # the training is complete
        num_examples = read_metadata(run_dir)["data"]["examples"]
        has_mixes = config.inputs.sources.layers == "mix"
        return RunResult(
            **vars(FileScore.of(trained.test)),
            num_examples=max(1, round(run.share * num_examples)),
            epochs=_epochs(run_dir, trained.num_epochs),
            best_epoch=trained.best.epoch, seconds=trained.seconds,
            wall_seconds=trained.resumed_seconds + time.monotonic() - started,
            layer_weights=read_layer_weights(run_dir).mixes if has_mixes else (),
            made=provenance(use.device),
        )  # fmt: skip

    def score_test(self, run: PlannedRun) -> None:
        """Score a finished run on the test file of its data set, unless that has been done."""
        use, file = self.resources, self.test_files[run.dataset]
        if use.store.read_test(run, file.sha256) is not None:
            return
        path = sample_file(
            file.path, use.samples_dir / f"test-{file.sha256}", task=run.task, limit=None,
            subset=run.metadata["data"]["subset"],
        )  # fmt: skip
        trained = TaskRun.load(
            use.store.run_dir(run), model=str(use.model), vectors=use.vectors, device=use.device,
            cache_dir=use.cache_dir,
        )  # fmt: skip
        use.store.write_test(run, file.sha256, FileScore.of(trained.evaluate(path)))

    def _files_of(self, run: PlannedRun) -> RunFiles:
        """Return the files that a run reads, made once per process."""
        if run.dataset not in self._run_files:
            origin = json.dumps(run.metadata["data"], sort_keys=True)
            name = f"{run.dataset}-{hashlib.sha256(origin.encode()).hexdigest()[:ID_LENGTH]}"
            self._run_files[run.dataset] = write_run_files(
                self.files[run.dataset], self.resources.samples_dir / name, self.tasks[run.dataset]
            )
        return self._run_files[run.dataset]


def _epochs(run_dir: Path, num_epochs: int) -> tuple[dict[str, float], ...]:
    """Return what the log has of each epoch; a log that lacks one would shift all others."""
    rows = read_log(run_dir / METRICS_FILE)
    if [row.get("epoch") for row in rows] != list(range(1, num_epochs + 1)):
        raise FormatError(
            f"{run_dir / METRICS_FILE} does not list every epoch (1 to {num_epochs}) once. Remove "
            f"{run_dir} to train the run again."
        )
    return tuple({"epoch": r["epoch"], "loss": r["loss"], "held_out": r["dev"]} for r in rows)


@dataclass(kw_only=True)
class ProbeRuns:
    """Measures families of vectors; reads the data only once."""

    resources: Resources
    settings: ProbeSettings
    data_dir: Path
    """Folder of all data sets."""
    _data: Any = field(default=None, init=False)

    def execute(self, run: PlannedRun) -> RunResult:
        """Measure one family of vectors, or find the example neighbors."""
        if self._data is None:
            samples_dir = self.resources.samples_dir / self.settings.dataset
            self._data = read_probe_data(self.settings, self.data_dir, samples_dir)
        started = time.monotonic()
        device = self.resources.device
        if run.condition == EXAMPLES:
            measured = {"metric": "", "value": 0.0, "details": self._examples()}
            num_examples = len(self._data)
        else:
            measured = self._measure(run)
            num_examples = len(getattr(self._data, "train", ()))
        seconds = time.monotonic() - started
        return RunResult(
            **measured, num_examples=num_examples, seconds=seconds, wall_seconds=seconds,
            made=provenance(device),
        )  # fmt: skip

    def _measure(self, run: PlannedRun) -> dict[str, Any]:
        probe = self.settings.probe
        sources = self._sources(run)
        measured = probe.measure(sources, self._data, 0)
        scores = [plain_score(score) for score in measured]
        main = probe.figures[0].name
        own = {name for source in sources for name in source.names}  # not a baseline
        return {
            "metric": probe.columns[main],
            "value": max(score[main] for score in scores if score["name"] in own),
            "details": {"scores": scores},
            "counts": np.stack([getattr(score, probe.counts) for score in measured]),
        }

    def _sources(self, run: PlannedRun) -> Sequence[VectorSource]:
        use, number = self.resources, count(1)
        if run.condition == STATIC_VECTORS:
            words = self.settings.probe.words(self._data)
            return [static_source(use.vectors, words)]
        seed = run.seed if run.condition == RANDOM else None
        sources = layer_sources(
            str(use.model), random_seed=seed, device=use.device, cache_dir=use.cache_dir,
            on_sentence=lambda: use.on_work(f"layers of {next(number):,} sentences"),
        )  # fmt: skip
        return sources[-1:]

    def _examples(self) -> dict[str, Any]:
        """Return static neighbors of a word, neighbors of it in two senses, and the glosses."""
        use = self.resources
        static = {"source": "static", "query": QUERY_WORD, "nearest": _nearest_static(use.vectors)}
        examples, shown = [static], []
        embedder = Embedder.load(use.model, device=use.device)
        occurrences = occurrences_in_senses(self._data, QUERY_WORD)
        nouns = occurrences_in_senses(self._data, QUERY_WORD, pos="NOUN")
        for query in queries_of(nouns, QUERY_WORD):
            use.on_work(f"neighbors of {QUERY_WORD!r} in context")
            nearest = neighbors_of_query(
                embedder, query, occurrences, num_neighbors=NUM_SENTENCES
            ).neighbors
            examples.append({
                "source": "biLM, top layer", "query": _with_sense(query),
                "nearest": [_with_sense(occurrence, CONTEXT_WORDS) for occurrence in nearest],
            })  # fmt: skip
            shown += [query, *nearest]
        inventory = read_sense_inventory(
            find_sense_inventory(self.data_dir / self.settings.dataset)
        )
        senses = [s for pos in ("NOUN", "VERB") for s in inventory.senses(QUERY_WORD, pos)]
        glosses = {sense.sense_key: sense.gloss for sense in senses}
        keys = dict.fromkeys(key for occurrence in shown for key in occurrence.sense.split())
        return {
            "examples": examples,
            "glosses": {key: glosses[key] for key in keys if key in glosses},
        }


def _with_sense(occurrence: Occurrence, context: int | None = None) -> str:
    return f"{occurrence.marked(context=context)} ({occurrence.sense})"


def _nearest_static(path: Path) -> list[str]:
    nearest = nearest_words(read_vectors(path), QUERY_WORD, num_neighbors=NUM_WORDS)
    return [word for word, _ in nearest] or [NO_VECTOR]
