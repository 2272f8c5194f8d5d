"""Executes a run: trains and scores a task model, or measures a family of vectors with a probe."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from elmokit.config import from_dict
from elmokit.embed.embedder import Embedder
from elmokit.errors import FormatError
from elmokit.experiments.definitions import EXAMPLES, RANDOM, STATIC_VECTORS, ProbeSettings
from elmokit.experiments.inputs import HashedFile, RunFiles, sample_file
from elmokit.experiments.plan import ID_LENGTH, PlannedRun
from elmokit.experiments.runs import FileScore, RunResult, provenance, read_score, write_score
from elmokit.files.temporary import remove_whole
from elmokit.jobs.job import METRICS_FILE, checkpoints_of, read_log
from elmokit.probes.inputs import VectorSource, find_sense_inventory, layer_sources, static_source
from elmokit.probes.layer_weights import read_layer_weights
from elmokit.probes.neighbors import Occurrence, nearest_words
from elmokit.probes.probe import plain_score
from elmokit.probes.sense_neighbors import neighbors_of_query, occurrences_in_senses, queries_of
from elmokit.tasks.formats.senses import read_sense_inventory
from elmokit.tasks.runs.run_dir import TaskRunConfig, read_metadata
from elmokit.tasks.runs.task_run import TaskRun
from elmokit.tasks.runs.train_task import train_task
from elmokit.vectors.vector_files import read_vectors

QUERY_WORD, NUM_SENTENCES, CONTEXT_WORDS = "play", 3, 8


@dataclass(frozen=True, kw_only=True)
class Resources:
    """What all runs of an experiment use."""

    output: Path
    model: Path
    vectors: Path
    device: str
    cache_dir: Path | None
    on_work: Callable[[str], None]
    """Gets the activity of a run, at every point where the run may be stopped by raising."""

    def run_dir(self, run: PlannedRun) -> Path:
        return self.output / "runs" / run.id

    @property
    def samples_dir(self) -> Path:
        return self.output / "samples"


def train_and_score(run: PlannedRun, files: RunFiles, use: Resources) -> RunResult:
    """Train a task model, from the beginning or the last checkpoint, and score it.

    The held-out part of the training set chooses the epoch and ends the training; the dev set is
    scored once, with the weights of that epoch.
    """
    started, run_dir = time.monotonic(), use.run_dir(run)
    config = from_dict(TaskRunConfig, run.metadata["config"], source=run.describe())
    # a directory without one is what a kill left before the first epoch ended
    has_checkpoint = checkpoints_of(run_dir).latest is not None
    if run_dir.exists() and not has_checkpoint:
        remove_whole(run_dir)
    trained = train_task(
        config, files.train, files.held_out, run_dir, test_path=files.dev,
        model=str(use.model), vectors=use.vectors, device=use.device, cache_dir=use.cache_dir,
        keep_static=False, save_on_signals=True, resume=has_checkpoint,
        on_epoch=lambda report: use.on_work(
            f"epoch {report.epoch}, held-out part {report.dev.value:.2f}"
        ),
        on_layers=lambda done, total: use.on_work(f"layers of {done:,} of {total:,} sentences"),
    )  # fmt: skip
    assert trained.test is not None  # the training is complete
    rows = read_log(run_dir / METRICS_FILE)
    if [row.get("epoch") for row in rows] != list(range(1, trained.num_epochs + 1)):
        raise FormatError(f"{run_dir / METRICS_FILE} is damaged: remove {run_dir} to train again.")
    num_examples = read_metadata(run_dir)["data"]["examples"]
    has_mixes = config.inputs.sources.layers == "mix"
    return RunResult(
        **vars(FileScore.of(trained.test)),
        num_examples=max(1, round(run.share * num_examples)),
        epochs=[{"epoch": r["epoch"], "loss": r["loss"], "held_out": r["dev"]} for r in rows],
        best_epoch=trained.best.epoch, seconds=trained.seconds,
        wall_seconds=trained.resumed_seconds + time.monotonic() - started,
        layer_weights=read_layer_weights(run_dir).mixes if has_mixes else (),
        made=provenance(use.device),
    )  # fmt: skip


def score_on_test(run: PlannedRun, file: HashedFile, use: Resources) -> FileScore:
    """Return the score of a finished run on a test file, which is stored with the run."""
    path = use.run_dir(run) / f"test-{file.sha256[:ID_LENGTH]}.json"
    score = read_score(path, FileScore)
    if score is None:
        sample = sample_file(
            file.path, use.samples_dir / f"test-{file.sha256}", task=run.task, limit=None,
            subset=run.metadata["data"]["subset"],
        )  # fmt: skip
        trained = TaskRun.load(
            use.run_dir(run), model=str(use.model), vectors=use.vectors, device=use.device,
            cache_dir=use.cache_dir,
        )  # fmt: skip
        score = FileScore.of(trained.evaluate(sample))
        write_score(path, score, test=file.sha256)
    return score


def measure(
    run: PlannedRun, settings: ProbeSettings, data: Any, data_dir: Path, use: Resources
) -> RunResult:
    """Measure one family of vectors with a probe, or find the example neighbors."""
    started = time.monotonic()
    if run.condition == EXAMPLES:
        outcome = {"metric": "", "value": 0.0}
        outcome["details"] = _examples(data, data_dir / settings.dataset, use)
    else:
        probe, source = settings.probe, _source(run, settings, data, use)
        measured = probe.measure([source], data, 0)
        scores = [plain_score(score) for score in measured]
        main = probe.figures[0].name
        outcome = {
            "metric": probe.columns[main],
            # not a baseline
            "value": max(score[main] for score in scores if score["name"] in source.names),
            "details": {"scores": scores},
            "counts": [getattr(score, probe.counts).tolist() for score in measured],
        }
    seconds = time.monotonic() - started
    return RunResult(
        **outcome, num_examples=len(getattr(data, "train", data)), seconds=seconds,
        wall_seconds=seconds, made=provenance(use.device),
    )  # fmt: skip


def _source(run: PlannedRun, settings: ProbeSettings, data: Any, use: Resources) -> VectorSource:
    if run.condition == STATIC_VECTORS:
        return static_source(use.vectors, settings.probe.words(data))
    number = count(1)
    return layer_sources(
        str(use.model), random_seed=run.seed if run.condition == RANDOM else None,
        device=use.device, cache_dir=use.cache_dir,
        on_sentence=lambda: use.on_work(f"layers of {next(number):,} sentences"),
    )[-1]  # fmt: skip


def _examples(data: Any, folder: Path, use: Resources) -> dict[str, Any]:
    """Return neighbors of a word, of it in two senses, and the glosses: table 4 of the paper."""
    static = [word for word, _ in nearest_words(read_vectors(use.vectors), QUERY_WORD)]
    examples = [{"source": "static", "query": QUERY_WORD, "nearest": static or ["no vector"]}]
    senses: set[str] = set()
    embedder = Embedder.load(use.model, device=use.device)
    occurrences = occurrences_in_senses(data, QUERY_WORD)
    nouns = occurrences_in_senses(data, QUERY_WORD, pos="NOUN")
    for query in queries_of(nouns, QUERY_WORD):
        use.on_work(f"neighbors of {QUERY_WORD!r} in context")
        nearest = neighbors_of_query(
            embedder, query, occurrences, num_neighbors=NUM_SENTENCES
        ).neighbors
        examples.append({
            "source": "biLM, top layer", "query": _with_sense(query),
            "nearest": [_with_sense(occurrence, CONTEXT_WORDS) for occurrence in nearest],
        })  # fmt: skip
        senses.update(key for occurrence in (query, *nearest) for key in occurrence.sense.split())
    inventory = read_sense_inventory(find_sense_inventory(folder))
    known = [sense for pos in ("NOUN", "VERB") for sense in inventory.senses(QUERY_WORD, pos)]
    glosses = {sense.sense_key: sense.gloss for sense in known if sense.sense_key in senses}
    return {"examples": examples, "glosses": glosses}


def _with_sense(occurrence: Occurrence, context: int | None = None) -> str:
    return f"{occurrence.marked(context=context)} ({occurrence.sense})"
