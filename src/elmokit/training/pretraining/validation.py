"""Validation during training: when it is due, its results, and keeping the best model."""

import dataclasses
import logging
import math
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from elmokit.config import parse_record
from elmokit.corpus.preparation import PreparedText
from elmokit.corpus.shards import ShardSet
from elmokit.corpus.text_shards import GENERAL_TEXT
from elmokit.evaluation.perplexity import PerplexityReport, perplexity_of_words
from elmokit.evaluation.text_scorer import TextScorer
from elmokit.files.atomic import atomic_file, previous_of
from elmokit.files.json_files import jsonable
from elmokit.files.temporary import remove_whole
from elmokit.jobs.job import NOT_RESUMABLE
from elmokit.training.cpu_settings import matmul_precision
from elmokit.training.pretraining.start import Start
from elmokit.training.schedules import Progress
from elmokit.version import __version__
from elmokit.weights.locate import CONFIG_NAME
from elmokit.weights.model_dir import PretrainedBiLM, load_model
from elmokit.weights.model_files import KEPT, read_config, short_count

log = logging.getLogger(__name__)

BEST = "best"
"""Folder of the best model so far, until the end of the run."""


class Validation:
    """Score held-out sentences during a run and keep the best model in ``best/``.

    All processes call every method; rank 0 scores and writes.
    """

    def __init__(self, start: Start, model: PretrainedBiLM) -> None:
        self.config, self.text, self.model = start.config.validation, start.text, model
        self.run_dir, self.processes = start.run_dir, start.processes
        self.seed, self.on_validation = start.config.train.seed, start.options.on_validation
        self.sentences = _evenly_spread(start.text, self.config.max_sentences)
        self.best = math.inf
        self.validations_without_best = 0
        self.num_due = 0
        self.validated_step = 0
        self.origin = dict(model.training_metadata)

    def metadata(self) -> dict[str, Any]:
        return {
            "best": None if self.best == math.inf else self.best,
            "validations_without_best": self.validations_without_best,
            "validated_step": self.validated_step,
        }

    def restore(self, metadata: dict[str, Any], share: float) -> None:
        best = metadata["best"]
        self.best = math.inf if best is None else float(best)
        self.validations_without_best = int(metadata["validations_without_best"])
        self.validated_step = int(metadata["validated_step"])
        self.num_due = self._num_due(share)

    def is_due(self, share: float) -> bool:
        return self.processes.agree(self._num_due(share) > self.num_due and bool(self.sentences))

    def _num_due(self, share: float) -> int:
        return int(share * self.config.num_times)

    def is_behind(self, progress: Progress) -> bool:
        return bool(self.sentences) and self.validated_step < progress.step

    @property
    def is_out_of_patience(self) -> bool:
        patience = self.config.patience
        return patience is not None and self.validations_without_best >= patience

    def validate(self, progress: Progress, share: float) -> PerplexityReport | None:
        """Score the held-out sentences; keep the best model. The report is on rank 0 only."""
        self.num_due = self._num_due(share)
        self.validated_step = progress.step
        report = None
        if self.processes.is_main:
            # quick kernels keep memory for each matrix shape, and sentences have very many
            with matmul_precision("highest"):
                report = self._score(self.model, self.sentences, len(self.sentences))
            if report.mean < self.best:
                self.best, self.validations_without_best = report.mean, 0
                self._save(progress, report)
            else:
                self.validations_without_best += 1
        now, device = [self.best, self.validations_without_best], self.processes.device
        agreed = self.processes.from_main(torch.tensor(now, dtype=torch.float64, device=device))
        self.best, self.validations_without_best = float(agreed[0]), int(agreed[1])
        return report

    def keep(self, progress: Progress, tokens: int) -> None:
        """Save the model as the one after so many words; on rank 0."""
        if self.processes.is_main:
            self._save(progress, None, self.run_dir / KEPT / short_count(tokens))

    def finish(self, progress: Progress) -> PerplexityReport | None:
        """Publish the best model, or the last if there is none, in the run directory.

        On rank 0, return its report over all held-out sentences, if there are any.
        """
        report = None
        if self.processes.is_main:
            best = self.run_dir / BEST
            if not best.exists() and previous_of(best).exists():
                previous_of(best).rename(best)  # a kill came while it was replaced
            has_model = best.exists() or (self.run_dir / CONFIG_NAME).exists()
            if not (self.sentences and has_model):
                self._save(progress, None)
            if best.exists():
                if self.text.valid is not None:
                    self._score_best(self.text.valid)
                publish_best(self.run_dir)
            figures = read_config(self.run_dir).training["perplexity"]
            report = None if figures is None else stored_report(figures, source=self.run_dir)
            if report is not None and math.isinf(report.mean):
                log.warning("the training has diverged: give a lower optimizer.learning_rate")
        self.processes.barrier()
        return report

    def _score(
        self, model: PretrainedBiLM, sentences: Iterable[Sequence[str]], total: int
    ) -> PerplexityReport:
        self.on_validation(0, total)
        scorer = TextScorer(model, precision="fp32")
        return perplexity_of_words(scorer, sentences, lambda done: self.on_validation(done, total))

    def _score_best(self, valid: ShardSet) -> None:
        """Record the best model's perplexity on all held-out sentences."""
        best = load_model(self.run_dir / BEST).to(self.processes.device)
        report = self._score(best, valid.sentences(), valid.num_sentences)
        best.training_metadata["perplexity"] = jsonable(report)
        best.save(self.run_dir / BEST)

    def _save(
        self, progress: Progress, report: PerplexityReport | None, target: Path | None = None
    ) -> None:
        shards = self.text.shards
        self.model.training_metadata = {
            **self.origin,
            "elmokit_version": __version__,
            "corpus": shards.metadata.get("sources", []),
            "tokens_in_corpus": shards.num_words,
            "targets_seen": progress.tokens,
            "epochs": progress.tokens / shards.num_targets,
            "steps": progress.step,
            "seconds": round(progress.seconds, 1),
            "seed": self.seed,
            "perplexity": jsonable(report),
        }
        if GENERAL_TEXT in shards.metadata:
            self.model.training_metadata[GENERAL_TEXT] = shards.metadata[GENERAL_TEXT]
        self.model.save(target or self.run_dir / BEST)


def stored_report(figures: Any, *, source: object) -> PerplexityReport:
    """Return a report as `jsonable` wrote it: null stands for infinity."""
    known = dict(figures) if isinstance(figures, Mapping) else {}
    infinite = {name: math.inf for name, value in known.items() if value is None}
    finite = parse_record(
        PerplexityReport, known | dict.fromkeys(infinite, 0.0), source=source, advice=NOT_RESUMABLE
    )
    return dataclasses.replace(finite, **infinite)


def publish_best(run_dir: Path) -> None:
    """Copy the best model's files into the run directory, then remove ``best/``.

    ``config.json`` comes last: it marks a model directory.
    """
    best = run_dir / BEST
    for path in sorted(best.iterdir(), key=lambda path: path.name == CONFIG_NAME):
        with atomic_file(run_dir / path.name) as temp_path:
            shutil.copyfile(path, temp_path)
    for directory in (previous_of(best), best):  # in this order: `finish` takes the other for best
        if directory.exists():
            remove_whole(directory)


def _evenly_spread(text: PreparedText, limit: int) -> list[list[str]]:
    """Return at most ``limit`` held-out sentences from all over the text."""
    if text.valid is None:
        return []
    num_sentences = text.valid.num_sentences
    return [
        sentence
        for index, sentence in enumerate(text.valid.sentences())
        if index * limit // num_sentences != (index - 1) * limit // num_sentences
    ]
