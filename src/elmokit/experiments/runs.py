"""One run of an experiment: what it is, executing it, and its outcome on disk.

While a task is trained, the directory of the run is that of the training. With ``result.json``,
which is written last, the run has ended; the directory then also is that of the trained model.
"""

import hashlib
import json
import platform
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from importlib.metadata import version
from itertools import count
from os import cpu_count
from pathlib import Path
from typing import Any

import numpy as np
import torch

from elmokit.config import from_dict, parse_record
from elmokit.embed.embedder import Embedder
from elmokit.errors import FormatError, counted
from elmokit.experiments.definitions import (
    EXAMPLES,
    RANDOM,
    STATIC_VECTORS,
    ExperimentOptions,
    ProbeSettings,
)
from elmokit.experiments.inputs import RunFiles
from elmokit.files.json_files import read_json, write_json
from elmokit.files.temporary import remove_whole
from elmokit.inference.device import pick_device
from elmokit.jobs.job import METRICS_FILE, checkpoints_of, read_log
from elmokit.probes.inputs import find_sense_inventory, layer_sources, static_source
from elmokit.probes.layer_weights import MixWeights, read_layer_weights
from elmokit.probes.neighbors import Occurrence, nearest_words
from elmokit.probes.probe import plain_score
from elmokit.probes.sense_neighbors import neighbors_of_query, occurrences_in_senses, queries_of
from elmokit.tasks.formats.senses import read_sense_inventory
from elmokit.tasks.runs.run_dir import TaskRunConfig, read_metadata
from elmokit.tasks.runs.task_run import TaskRun
from elmokit.tasks.runs.train_task import train_task
from elmokit.vectors.vector_files import read_vectors
from elmokit.version import __version__

RESULT_FILE, DIVERGED_FILE = "result.json", "diverged.json"
RESULTS_FILE = "results.json"  # of the experiment
ID_LENGTH = 16
QUERY_WORD, NUM_SENTENCES, CONTEXT_WORDS = "play", 3, 8

OnWork = Callable[[str], None]
"""Gets the activity of a run, at every point where the run may be stopped by raising."""


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    """One run, finished or not."""

    task: str  # or the kind of a probe
    dataset: str
    condition: str
    share: float = 1.0
    seed: int = 0
    metadata: Mapping[str, Any]
    """Everything that determines the result, JSON-serializable; for a task, with ``config``."""

    @cached_property
    def id(self) -> str:
        text = json.dumps({"task": self.task, **self.metadata}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:ID_LENGTH]

    @property
    def learning_rate(self) -> float:
        return self.metadata["config"]["train"]["learning_rate"]

    def directory(self, output: Path) -> Path:
        return output / "runs" / self.id

    def describe(self) -> str:
        share = "" if self.share == 1 else f", {self.share:.4g} of the labels"
        return f"{self.task} ({self.dataset}), {self.condition}{share}, seed {self.seed}"


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """The result of a run; its score is that of the dev set, with the weights of the best epoch."""

    metric: str
    value: float
    details: Mapping[str, Any] = field(default_factory=dict)
    counts: list[Any] = field(default_factory=list)
    """Counts per example, (examples, k), from which the main score is computed; of probes, those of
    each representation."""
    sampling_units: list[int] = field(default_factory=list)
    """(examples,): the sampling unit of each; empty: an example is one."""
    num_examples: int
    epochs: list[dict[str, float]] = field(default_factory=list)
    """``epoch``, ``loss`` and ``held_out`` (the score that chose the best one) of each epoch."""
    best_epoch: int = 0
    seconds: float  # of training and scoring the held-out part
    wall_seconds: float = 0.0
    """The same plus reading, scoring the dev set, and layers that were not cached."""
    layer_weights: tuple[MixWeights, ...] = ()
    made: Mapping[str, str] = field(default_factory=dict)
    """Date, hardware and versions; where the training was resumed, of its last part."""

    @property
    def counts_by_unit(self) -> np.ndarray:
        """The sums of the counts of each sampling unit: (units, k)."""
        counts = np.array(self.counts, dtype=np.float64)
        if not self.sampling_units:
            return counts
        sums = np.zeros((max(self.sampling_units) + 1, counts.shape[1]))
        np.add.at(sums, np.array(self.sampling_units), counts)
        return sums

    @property
    def held_out(self) -> float:
        return max(row["held_out"] for row in self.epochs)

    @property
    def ended_at_its_best(self) -> bool:
        """Whether the last epoch was the best one, so that more might be better."""
        return bool(self.epochs) and self.best_epoch == self.epochs[-1]["epoch"]


Outcome = RunResult | str
"""A result, or why there is none."""


def read_outcome(run_dir: Path) -> Outcome | None:
    path = run_dir / DIVERGED_FILE
    if path.is_file():
        advice = "Remove that file to repeat the run."
        return f"diverged: {read_json(path, advice=advice, required=['message'])['message']}"
    path = run_dir / RESULT_FILE
    if not path.is_file():
        return None
    advice = f"Remove {path} to repeat the run."
    table = read_json(path, advice=advice, required=["result"])["result"]
    return parse_record(RunResult, table, source=path, advice=advice)


def write_result(run: PlannedRun, output: Path, result: RunResult) -> None:
    run_dir = run.directory(output)
    run_dir.mkdir(parents=True, exist_ok=True)
    write_json(run_dir / RESULT_FILE, {"run": vars(run), "result": asdict(result)}, indent=None)


def write_divergence(run_dir: Path, message: str) -> None:
    """Replace the training of a run, whose weights help nobody, by a record."""
    shutil.rmtree(run_dir, ignore_errors=True)
    write_json(run_dir / DIVERGED_FILE, {"message": message})


def train_and_score(
    run: PlannedRun, files: RunFiles, use: ExperimentOptions, on_work: OnWork
) -> RunResult:
    """Train a task model, from the beginning or the last checkpoint, and score it.

    The held-out part of the training set chooses the epoch and ends the training; the dev set is
    scored once, with the weights of that epoch.
    """
    started, run_dir = time.monotonic(), run.directory(use.output)
    config = from_dict(TaskRunConfig, run.metadata["config"], source=run.describe())
    # a directory without one is what a kill left before the first epoch ended
    has_checkpoint = checkpoints_of(run_dir).latest is not None
    if run_dir.exists() and not has_checkpoint:
        remove_whole(run_dir)
    trained = train_task(
        config, files.train, files.held_out, run_dir, model=use.model, vectors=use.vectors,
        device=use.device, cache_dir=use.cache_dir, keep_static=False,
        save_on_signals=True, resume=has_checkpoint,
        on_epoch=lambda report: on_work(
            f"epoch {report.epoch}, held-out part {report.dev.value:.2f}"
        ),
        on_layers=lambda done, total: on_work(f"layers of {done:,} of {total:,} sentences"),
    )  # fmt: skip
    score = TaskRun.load(
        run_dir, model=use.model, vectors=use.vectors, device=use.device, cache_dir=use.cache_dir
    ).evaluate(files.dev)
    rows = read_log(run_dir / METRICS_FILE)
    if [row.get("epoch") for row in rows] != list(range(1, trained.num_epochs + 1)):
        raise FormatError(f"{run_dir / METRICS_FILE} is damaged: remove {run_dir} to train again.")
    num_examples = read_metadata(run_dir)["data"]["examples"]
    has_mixes = config.inputs.sources.layers == "mix"
    return RunResult(
        metric=score.metric, value=score.value, details=score.details,
        counts=score.counts.tolist(), sampling_units=score.sampling_units.tolist(),
        num_examples=max(1, round(run.share * num_examples)),
        epochs=[{"epoch": r["epoch"], "loss": r["loss"], "held_out": r["dev"]} for r in rows],
        best_epoch=trained.best.epoch, seconds=trained.seconds,
        wall_seconds=trained.resumed_seconds + time.monotonic() - started,
        layer_weights=read_layer_weights(run_dir).mixes if has_mixes else (),
        made=_provenance(use.device),
    )  # fmt: skip


def measure(
    run: PlannedRun, settings: ProbeSettings, data: Any, use: ExperimentOptions, on_work: OnWork
) -> RunResult:
    """Measure one family of vectors with a probe, or find the example neighbors."""
    started, probe = time.monotonic(), settings.probe
    assert use.vectors is not None  # checked before any run
    if run.condition == EXAMPLES:
        on_work(f"neighbors of {QUERY_WORD!r} in context")
        inventory = find_sense_inventory(use.data_dir / settings.dataset)
        examples = _example_neighbors(data, inventory, use.vectors, use)
        outcome: dict[str, Any] = {"metric": "", "value": 0.0, "details": examples}
    else:
        if run.condition == STATIC_VECTORS:
            source = static_source(use.vectors, probe.words(data))
        else:
            number = count(1)
            *_, source = layer_sources(
                use.model, random_seed=run.seed if run.condition == RANDOM else None,
                device=use.device,
                on_sentence=lambda: on_work(f"layers of {next(number):,} sentences"),
            )  # fmt: skip
        measured, main = probe.measure([source], data, 0), probe.figures[0].name
        scores = [plain_score(score) for score in measured]
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
        wall_seconds=seconds, made=_provenance(use.device),
    )  # fmt: skip


def _example_neighbors(
    sentences: Any, inventory: Path, vectors: Path, use: ExperimentOptions
) -> dict[str, Any]:
    """Return neighbors of a word, of it in two senses, and the glosses: table 4 of the paper."""
    static = [word for word, _ in nearest_words(read_vectors(vectors), QUERY_WORD)]
    examples = [{"source": "static", "query": QUERY_WORD, "nearest": static or ["no vector"]}]
    senses: set[str] = set()
    embedder = Embedder.load(use.model, device=use.device)
    occurrences = occurrences_in_senses(sentences, QUERY_WORD)
    nouns = occurrences_in_senses(sentences, QUERY_WORD, pos="NOUN")
    for query in queries_of(nouns, QUERY_WORD):
        nearest = neighbors_of_query(
            embedder, query, occurrences, num_neighbors=NUM_SENTENCES
        ).neighbors
        examples.append({
            "source": "biLM, top layer", "query": _with_sense(query),
            "nearest": [_with_sense(occurrence, CONTEXT_WORDS) for occurrence in nearest],
        })  # fmt: skip
        senses.update(key for occurrence in (query, *nearest) for key in occurrence.sense.split())
    known = read_sense_inventory(inventory)
    glosses = {
        sense.sense_key: sense.gloss
        for pos in ("NOUN", "VERB")
        for sense in known.senses(QUERY_WORD, pos)
        if sense.sense_key in senses
    }
    return {"examples": examples, "glosses": glosses}


def _with_sense(occurrence: Occurrence, context: int | None = None) -> str:
    return f"{occurrence.marked(context=context)} ({occurrence.sense})"


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")


def _provenance(device: str) -> dict[str, str]:
    torch_device = pick_device(device)
    gpu = f", {torch.cuda.get_device_name(torch_device)}" if torch_device.type == "cuda" else ""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    processor = next(names, "") or platform.processor() or platform.machine()
    cores, threads = cpu_count() or 1, torch.get_num_threads()
    return {
        "date": now(),
        "hardware": f"{processor}, {counted(cores, 'core')}, {counted(threads, 'thread')}{gpu}",
        "versions": f"elmokit {__version__}, Python {platform.python_version()}, "
        f"PyTorch {torch.__version__}, NumPy {version('numpy')}",
    }
