"""Pre-training: one run of a biLM with updates, log, validations, checkpoints, early stopping.

Every process makes one `TrainingRun` and calls its `run`; rank 0 writes the run directory.
"""

import logging
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import torch

from elmokit.bilm.bilm import BiLMConfig
from elmokit.config import parse_record, to_dict
from elmokit.corpus.preparation import PreparedText
from elmokit.errors import as_input_error, counted
from elmokit.evaluation.perplexity import PerplexityReport, warn_of_unknown
from elmokit.files.json_files import read_json
from elmokit.jobs.identity import FIXED
from elmokit.jobs.job import (
    NOT_RESUMABLE,
    RUN_FILE,
    MetricsLog,
    StopRequest,
    checkpoints_of,
    is_begun,
    stop_requests,
)
from elmokit.text.tokenizers.registry import build_tokenizer
from elmokit.training.checkpoints import load_checkpoint, restoring
from elmokit.training.cpu_settings import kept_memory, quick_matmul
from elmokit.training.pretraining.run_config import RunConfig
from elmokit.training.pretraining.start import RunOptions, Start, TrainingEvent, start_run
from elmokit.training.pretraining.updates import Updates
from elmokit.training.pretraining.validation import Validation
from elmokit.training.schedules import Limits, Progress
from elmokit.weights.model_dir import PretrainedBiLM
from elmokit.weights.model_files import KEPT, short_count

log = logging.getLogger(__name__)

FIRST_CHECKPOINT_SECONDS = 15.0  # or at the first validation, if that is earlier


@dataclass(frozen=True, kw_only=True)
class PretrainConfig(RunConfig):
    """A pre-training run, except for its corpus and budget."""

    model: BiLMConfig = field(default_factory=BiLMConfig, metadata=FIXED)


@dataclass(frozen=True)
class TrainingResult:
    model_dir: Path
    progress: Progress
    num_epochs: float
    """Passes made over the corpus, counted in predicted words; those that
    ``train.zero_state_share`` skips are not counted."""
    perplexity: PerplexityReport | None
    """Of the best model on all held-out sentences, by full softmax; none if there are none."""
    stopped_early: bool


def pretrain(
    config: PretrainConfig,
    corpus: Sequence[Path],
    run_dir: Path,
    options: RunOptions = RunOptions(),  # noqa: B008 (frozen)
) -> TrainingResult:
    """Train a biLM on raw text; ``run_dir`` is a model directory at the end.

    ``corpus`` is text files, or one directory of finished shards. In fp32 on the CPU, with a budget
    in epochs or tokens, a resumed run has bit for bit the losses of one that was never stopped.
    `ConfigError` if a resumed run has another model, text, vocabulary or batch; `FileExistsError`
    if ``run_dir`` holds a run and ``resume`` is not set; `Stopped` after a signal.
    """
    with start_run(
        "pretrain", config, corpus, run_dir, options, tokenizer=config.text.tokenizer,
        normalization=config.model.char_vocab.normalization, fixed_vocab=options.vocab,
    ) as start:  # fmt: skip
        return TrainingRun(start, new_model(config, start.text)).run()


def new_model(config: PretrainConfig, text: PreparedText) -> PretrainedBiLM:
    """Build an untrained model for prepared text."""
    num_words = None if config.model.char_cnn is not None else len(text.vocab)
    characters, tokenizer = config.model.char_vocab, config.text.tokenizer
    form = text.shards.metadata.get("normalization", characters.normalization)
    with as_input_error():  # settings meet the vocabulary's size and the shards here
        characters = replace(characters, normalization=form)
        model = PretrainedBiLM(
            replace(config.model, num_words=num_words, char_vocab=characters),
            word_vocab=text.vocab,
            softmax_config=config.softmax,
            # finished shards may have another tokenizer than the configuration
            tokenizer=text.shards.tokenizer
            or replace(tokenizer, name=build_tokenizer(tokenizer).name),
            warm_text=text.warm_text(),
        )
    model.spelling = text.spelling
    generator = torch.Generator().manual_seed(config.train.seed)
    model.reset_parameters(generator)
    assert model.softmax is not None
    model.softmax.reset_parameters(generator)
    return model


class TrainingRun:
    """One run over prepared text, from its last checkpoint on; trains ``model`` in place.

    In the first ``softmax_first_share`` of the budget only the softmax is trained.
    """

    def __init__(
        self, start: Start, model: PretrainedBiLM, *, softmax_first_share: float = 0.0
    ) -> None:
        self.config, self.run_dir, self.processes = start.config, start.run_dir, start.processes
        self.options, self.text = start.options, start.text
        limits, config = _limits(start.run_dir, start.options.limits), start.config
        self.budget = limits.budget(
            targets_per_epoch=start.text.shards.num_targets,
            targets_per_step=config.train.batch_size * config.train.unroll_steps,
            default_epochs=config.train.num_epochs,
        )
        self.checkpoints = checkpoints_of(start.run_dir)
        checkpoint = load_checkpoint(self.checkpoints)
        self.updates = Updates(
            start, model, self.budget, checkpoint, softmax_first_share=softmax_first_share
        )
        average = self.updates.average
        self.validation = Validation(start, model if average is None else average.model)
        if checkpoint is not None:
            with restoring(checkpoint):
                share = self.budget.share(self.updates.progress)
                self.validation.restore(checkpoint.metadata, share)
        self._saved_step = None if checkpoint is None else self.updates.progress.step
        self._log: MetricsLog | None = None
        if start.job is not None:  # recorded now that nothing can be refused any more
            start.job.begin(limits=to_dict(limits))

    def run(self) -> TrainingResult:
        """Train until budget or patience ends; the run directory then holds the best model."""
        is_main, updates = self.processes.is_main, self.updates
        stopped_early = self.validation.is_out_of_patience  # a resumed run may already be
        if is_main:
            self._log = MetricsLog(self.run_dir, resume_step=updates.progress.step)
        updates.model.train()
        is_quick = self.config.train.quick_matmul and self.processes.device.type == "cpu"
        wanted, is_alone = self.options.save_on_signals, self.processes.size == 1
        with (
            quick_matmul(is_quick),
            kept_memory(),
            stop_requests(wanted, second_stops_at_once=is_alone) as stop,
        ):
            if not stopped_early:
                stopped_early = self._update(stop)
            is_behind = self.validation.is_behind(updates.progress)
            if is_behind:  # the budget was changed when the run was resumed
                self._validate(1.0)
            if is_behind or (self._saved_step or 0) < updates.progress.step:
                self.save()
            self._stop_if_asked(stop)
        perplexity = self.validation.finish(updates.progress)
        self._warn_of_unkept()
        if perplexity is not None and is_main:
            warn_of_unknown(perplexity)
        epochs = updates.progress.tokens / self.text.shards.num_targets
        return TrainingResult(self.run_dir, updates.progress, epochs, perplexity, stopped_early)

    def _warn_of_unkept(self) -> None:
        """Warn of models that were to be kept and are not: after the end, or asked for too late."""
        names = map(short_count, self.config.train.keep_tokens)
        missing = [name for name in names if not (self.run_dir / KEPT / name).exists()]
        if missing and self.processes.is_main:
            log.warning(
                "train.keep_tokens (--keep): nothing was kept after %s; the run read %s",
                ", ".join(missing), counted(self.updates.progress.tokens, "word"),
            )  # fmt: skip

    def _update(self, stop: StopRequest) -> bool:
        """Make all updates with what is due after each; tell whether patience ended them."""
        last_log, last_save = self.updates.progress, time.monotonic()
        pauses = 0.0  # seconds since `last_log` in which nothing was trained
        read = last_log.tokens
        for report in self.updates.run():
            paused_at, now = time.monotonic(), report.progress
            training_seconds = max(1e-9, now.seconds - last_log.seconds - pauses)
            speed = (now.tokens - last_log.tokens) / training_seconds
            if now.step % self.config.train.log_steps == 0:
                last_log, pauses = now, 0.0
                if self._log is not None:
                    self._log.write({
                        "step": now.step, "tokens": now.tokens, "loss": report.loss, **report.parts,
                        "tokens_per_second": round(speed, 1), "learning_rate": report.learning_rate,
                        "gradient_norm": report.gradient_norm, "seconds": round(now.seconds, 3),
                    })  # fmt: skip
            for tokens in self.config.train.keep_tokens:
                if read < tokens <= now.tokens:
                    self.validation.keep(now, tokens)
            read = now.tokens
            is_validated = self.validation.is_due(report.share)
            validation = self._validate(report.share) if is_validated else None
            if self.processes.is_main:
                self.options.on_event(TrainingEvent(report, speed, validation))
            if is_validated and self.validation.is_out_of_patience:
                return True
            if self._save_is_due(time.monotonic() - last_save, validation is not None):
                self.save()
                last_save = time.monotonic()
            self._stop_if_asked(stop)
            pauses += time.monotonic() - paused_at
        return False

    def _validate(self, share: float) -> PerplexityReport | None:
        progress = self.updates.progress
        report = self.validation.validate(progress, share)
        if self._log is not None and report is not None:
            figures = {f"valid_{name}": value for name, value in asdict(report).items()}
            self._log.write({"step": progress.step, "tokens": progress.tokens, **figures})
        return report

    def _save_is_due(self, seconds_since_save: float, was_validated: bool) -> bool:
        """Tell whether to write a checkpoint, by the clock and the validations of rank 0."""
        config = self.config.train
        if config.checkpoint_steps is not None:
            return self.updates.progress.step % config.checkpoint_steps == 0
        interval = config.checkpoint_seconds
        if self.budget.seconds is not None:
            interval = min(interval, self.budget.seconds / 10)
        is_due = seconds_since_save >= interval
        if self._saved_step is None:
            is_due |= was_validated or seconds_since_save >= FIRST_CHECKPOINT_SECONDS
        return self.processes.agree(is_due)

    def _stop_if_asked(self, stop: StopRequest) -> None:
        is_asked = stop.signal_number is not None
        if not self.options.save_on_signals or not self.processes.agree(is_asked):
            return
        step = self.updates.progress.step
        log.info("stopping after step %d, with a checkpoint", step)
        if (self._saved_step or 0) < step:
            self.save()
        raise stop.stopped(f"after step {step}")

    def save(self) -> None:
        self.updates.save(self.checkpoints, self.validation.metadata())
        self._saved_step = self.updates.progress.step


def _limits(run_dir: Path, limits: Limits) -> Limits:
    """Return the limits of a run: those given, else those recorded."""
    path = run_dir / RUN_FILE
    recorded = read_json(path, advice=NOT_RESUMABLE).get("limits") if is_begun(run_dir) else None
    if recorded is None or limits != Limits():
        return limits
    limits = parse_record(Limits, recorded, source=f"{path}, limits", advice=NOT_RESUMABLE)
    log.info("the run goes on to its limit: %s", limits.describe())
    return limits
