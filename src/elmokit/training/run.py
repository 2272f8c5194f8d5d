"""One training run of a biLM over prepared text: what pre-training and fine-tuning share.

A run directory holds ``run.json`` (the resolved configuration), ``metrics.jsonl``, ``checkpoints/``
and ``best/`` (the best model by validation). When the run ends, the best model's files move up, and
the run directory is a model directory too.
"""

import dataclasses
import json
import logging
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch

import elmokit
from elmokit.corpus.stream import WindowStream
from elmokit.errors import ConfigError
from elmokit.metrics.perplexity import PerplexityReport
from elmokit.nn.bilm import BiLMState
from elmokit.training.checkpoint import (
    Checkpoint,
    latest_checkpoint,
    load_checkpoint,
    restore_optimizer,
    save_checkpoint,
)
from elmokit.training.distributed import World
from elmokit.training.loop import OptimizerConfig, StepReport, StepResult, train
from elmokit.training.objective import BiLMLoss, WindowTensors
from elmokit.training.perplexity import perplexity
from elmokit.training.precision import Precision, autocast, quick_matmul
from elmokit.training.prepare import PreparedText
from elmokit.training.run_log import RunLog
from elmokit.training.schedules import Limits, Progress, ScheduleConfig
from elmokit.weights.model_dir import PretrainedBiLM, load_model

log = logging.getLogger(__name__)

RUN_FILE, METRICS_FILE, CHECKPOINTS, BEST = "run.json", "metrics.jsonl", "checkpoints", "best"


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """Batches, length, logging."""

    batch_size: int = 64
    """Rows of text read side by side, over all processes."""
    unroll_steps: int = 20
    """Words between two updates; the LSTM state goes on, gradients do not."""
    shuffle: Literal["sentences", "none"] = "sentences"
    """``none`` keeps the order of the corpus."""
    num_epochs: float = 10.0
    """Passes over the corpus where no minutes, epochs or tokens are given."""
    seed: int = 0
    """Of weights, shuffling, dropout and candidates."""
    precision: Precision = "fp32"
    """``bf16`` computes products in half width; weights, state and loss stay fp32."""
    quick_matmul: bool = True
    """Use the processor's quicker fp32 products where they prove exact (relative error below 1e-5)."""
    log_steps: int = 10
    """A row in metrics.jsonl every so many updates."""
    checkpoint_seconds: float = 120.0
    """Time between checkpoints."""
    checkpoint_steps: int | None = None
    """Updates between checkpoints, instead of the time."""

    def __post_init__(self) -> None:
        """Refuse sizes below one."""
        if min(self.batch_size, self.unroll_steps, self.log_steps) < 1 or self.num_epochs <= 0:
            raise ValueError(
                "`batch_size`, `unroll_steps` and `log_steps` must be at least 1, `num_epochs` "
                "positive"
            )


@dataclass(frozen=True, kw_only=True)
class ValidationConfig:
    """Full-softmax perplexity on held-out text, while training."""

    num_times: int = 10
    """Validations, spread evenly over the budget; the last is at its end."""
    max_sentences: int = 1000
    """Sentences scored each time; the figure at the end of the run is over all of them."""
    patience: int | None = None
    """Stop after so many validations without a better one; none: never."""


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """How a biLM is trained, whatever it starts from."""

    train: TrainConfig = field(default_factory=TrainConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    validation: ValidationConfig = field(default_factory=ValidationConfig)


@dataclass(frozen=True)
class TrainingEvent:
    """What a run tells its caller: after every update, and after every validation."""

    report: StepReport[BiLMState]
    tokens_per_second: float
    validation: PerplexityReport | None = None


@dataclass(frozen=True)
class TrainingResult:
    """How a run ended."""

    model_dir: Path
    progress: Progress
    num_epochs: float
    """Passes made over the corpus."""
    perplexity: PerplexityReport | None
    """Of the best model on all held-out sentences, by full softmax; none if there are none."""
    stopped_early: bool


class TrainingRun:
    """One run over prepared text: what `pretrain` and `finetune` share.

    Args:
        config: Of the run.
        text: Shards, vocabulary, held-out sentences.
        model: With vocabulary and softmax; trained in place.
        run_dir: Where everything is written.
        processes: That train together.
        limits: How long.
        resume: Go on from the last checkpoint, if there is one.
        softmax_first_share: Share of the budget in which only the softmax is trained.
    """

    def __init__(
        self,
        config: RunConfig,
        text: PreparedText,
        model: PretrainedBiLM,
        run_dir: Path,
        processes: World,
        limits: Limits,
        *,
        resume: bool,
        softmax_first_share: float = 0.0,
    ) -> None:
        self.softmax_first_share = softmax_first_share
        self.config, self.text, self.run_dir, self.processes = config, text, run_dir, processes
        train_config = config.train
        if train_config.batch_size % processes.size:
            raise ConfigError(
                f"train.batch_size={train_config.batch_size} rows cannot be shared evenly by "
                f"{processes.size} processes."
            )
        self.model = model.to(processes.device)
        self.num_rows = train_config.batch_size // processes.size
        self.first_row = processes.rank * self.num_rows
        targets_per_step = train_config.batch_size * train_config.unroll_steps
        self.budget = limits.budget(
            targets_per_epoch=text.shards.num_targets,
            targets_per_step=targets_per_step,
            default_epochs=train_config.num_epochs,
        )
        self.valid_sentences = _first_sentences(text, config.validation.max_sentences)
        self.progress = Progress()
        self.best = float("inf")
        self.validations_without_best = 0
        self.next_validation = 1
        self._build(latest_checkpoint(run_dir / CHECKPOINTS) if resume else None)

    def _build(self, checkpoint_path: Path | None) -> None:
        """Build loss, optimizer and stream, from a checkpoint if there is one."""
        config = self.config
        assert self.model.softmax is not None
        self.loss = BiLMLoss(
            self.model,
            self.model.softmax,
            dropout=self.model.config.dropout,
            seed=config.train.seed,
            num_rows=config.train.batch_size,
            first_row=self.first_row,
        )
        checkpoint = None if checkpoint_path is None else load_checkpoint(checkpoint_path)
        if checkpoint is not None:
            self.model.load_state_dict(checkpoint.model)
        self.optimizer = config.optimizer.build(self.loss)
        self.stream_state: dict[str, Any] | None = None
        self.state = BiLMState.zeros(
            self.model.config.lstm, self.num_rows, device=self.processes.device
        )
        if checkpoint is not None:
            self._restore(checkpoint)
        self.stream = WindowStream(
            self.text.shards,
            self.text.vocab,
            self.model.char_vocab,
            batch_size=config.train.batch_size,
            num_steps=config.train.unroll_steps,
            seed=config.train.seed,
            shuffle=config.train.shuffle,
            rank=self.processes.rank,
            world_size=self.processes.size,
            state=self.stream_state,
        )

    def _restore(self, checkpoint: Checkpoint) -> None:
        restore_optimizer(self.optimizer, checkpoint.optimizer)
        facts = checkpoint.facts
        self.progress = Progress(**facts["progress"])
        self.best = facts["best"]
        self.validations_without_best = facts["validations_without_best"]
        self.next_validation = facts["next_validation"]
        self.stream_state = facts["stream"]
        own = slice(self.first_row, self.first_row + self.num_rows)
        whole = BiLMState(checkpoint.carry["hidden"], checkpoint.carry["cell"])
        mine = whole.rows(own)
        self.state = BiLMState(
            mine.hidden.to(self.processes.device), mine.cell.to(self.processes.device)
        )
        log.info("resuming at step %d from %s", self.progress.step, checkpoint.path)

    def run(self, on_event: Callable[[TrainingEvent], None] | None = None) -> TrainingResult:
        """Train to the end of the budget (or of patience), then put the best model into the run directory."""
        stopped_early = False
        main = self.processes.is_main
        run_log = (
            RunLog(self.run_dir / METRICS_FILE, resume_step=self.progress.step) if main else None
        )
        wrapped = self.processes.wrap(self.loss)
        last_log = (self.progress.tokens, self.progress.seconds)
        last_save = time.monotonic()
        config = self.config.train

        def objective(batch: WindowTensors, state: BiLMState, step: int) -> StepResult[BiLMState]:
            forward, backward, new_state = wrapped(batch, state, step)
            parts = {"forward_loss": forward.detach(), "backward_loss": backward.detach()}
            return StepResult((forward + backward) / 2, parts, batch.num_targets, new_state)

        with ExitStack() as stack:
            stack.enter_context(
                quick_matmul(config.quick_matmul and self.processes.device.type == "cpu")
            )
            self.model.train()
            report = None
            for report in train(
                objective,
                self._batches(),
                self.optimizer,
                carry=self.state,
                budget=self.budget,
                schedule=self.config.schedule,
                config=self.config.optimizer,
                progress=self.progress,
                world=self.processes,
                autocast=autocast(config.precision, self.processes.device),
                frozen=self._frozen if self.softmax_first_share > 0 else None,
            ):
                self.progress, self.state = report.progress, report.carry
                speed = _speed(last_log, report.progress)
                if report.progress.step % config.log_steps == 0:
                    last_log = (report.progress.tokens, report.progress.seconds)
                    if run_log is not None:
                        run_log.write(_row(report, speed))
                validation = None
                if self._validation_is_due(report.share):
                    validation = self._validate()
                    if run_log is not None and validation is not None:
                        run_log.write({"step": report.progress.step, **_validation_row(validation)})
                if on_event is not None and main:
                    on_event(TrainingEvent(report, speed, validation))
                patience = self.config.validation.patience
                if (
                    validation is not None
                    and patience is not None
                    and self.validations_without_best >= patience
                ):
                    stopped_early = True
                due = (
                    report.progress.step % config.checkpoint_steps == 0
                    if config.checkpoint_steps is not None
                    else self._agree(time.monotonic() - last_save >= config.checkpoint_seconds)
                )
                if due or stopped_early:
                    self.save()
                    last_save = time.monotonic()
                if stopped_early:
                    break
            if report is not None:
                self.save()
        return self._finish(stopped_early)

    def save(self) -> None:
        """Write a checkpoint of this very moment."""
        hidden = self.processes.gather_rows(self.state.hidden, dim=2)
        cell = self.processes.gather_rows(self.state.cell, dim=2)
        if self.processes.is_main:
            save_checkpoint(
                self.run_dir / CHECKPOINTS,
                self.progress.step,
                model=self.model.state_dict(),
                optimizer=self.optimizer,
                carry={"hidden": hidden, "cell": cell},
                facts={
                    "progress": dataclasses.asdict(self.progress),
                    "best": self.best,
                    "validations_without_best": self.validations_without_best,
                    "next_validation": self.next_validation,
                    "stream": self.stream_state,
                },
            )
        self.processes.barrier()

    def _batches(self) -> Iterator[WindowTensors]:
        """Yield batches on the device; remember where the stream stands after each."""
        word_input = self.model.config.char_cnn is None
        batch: WindowBatch
        for batch, state in self.stream:
            self.stream_state = state
            yield WindowTensors.from_batch(
                batch, word_input=word_input, device=self.processes.device
            )

    def _frozen(self, share: float) -> list[torch.nn.Parameter]:
        """Return the biLM's parameters while the softmax is trained alone."""
        if share >= self.softmax_first_share:
            return []
        return [
            parameter
            for name, parameter in self.model.named_parameters()
            if not name.startswith("softmax.")
        ]

    def _agree(self, wanted: bool) -> bool:
        """Let rank 0's clock decide for all."""
        if self.processes.size == 1:
            return wanted
        return bool(
            self.processes.from_main(torch.tensor(float(wanted), device=self.processes.device))
        )

    def _validation_is_due(self, share: float) -> bool:
        due = share >= self.next_validation / self.config.validation.num_times
        return self._agree(due and bool(self.valid_sentences))

    def _validate(self) -> PerplexityReport | None:
        """Score the held-out sentences on rank 0; keep the model if it is the best so far."""
        times = self.config.validation.num_times
        share = self.budget.share(self.progress)
        self.next_validation = min(times, int(share * times)) + 1
        report = None
        if self.processes.is_main:
            report = perplexity(self.model, self.valid_sentences)
            if report.mean < self.best:
                self.best, self.validations_without_best = report.mean, 0
                self._save_best(report)
            else:
                self.validations_without_best += 1
        agreed = self.processes.from_main(
            torch.tensor(
                [self.best, self.validations_without_best],
                dtype=torch.float64,
                device=self.processes.device,
            )
        )
        self.best, self.validations_without_best = float(agreed[0]), int(agreed[1])
        return report

    def _save_best(self, report: PerplexityReport | None) -> None:
        self.model.training_facts = {
            "elmokit_version": elmokit.__version__,
            "corpus": self.text.shards.metadata.get("sources", []),
            "tokens_in_corpus": self.text.shards.num_words,
            "targets_seen": self.progress.tokens,
            "epochs": self.progress.tokens / self.text.shards.num_targets,
            "steps": self.progress.step,
            "seconds": round(self.progress.seconds, 1),
            "seed": self.config.train.seed,
            "perplexity": None if report is None else dataclasses.asdict(report),
        }
        self.model.save(self.run_dir / BEST)

    def _finish(self, stopped_early: bool) -> TrainingResult:
        """Move the best model into the run directory and score it on everything held out."""
        report = None
        if self.processes.is_main:
            if not (self.run_dir / BEST).exists() and not (self.run_dir / "config.json").exists():
                self._save_best(None)
            if (self.run_dir / BEST).exists():
                best = load_model(self.run_dir / BEST)
                if self.text.valid is not None:
                    report = perplexity(best, self.text.valid.sentences())
                    best.training_facts = {
                        **best.training_facts,
                        "perplexity": dataclasses.asdict(report),
                    }
                    best.save(self.run_dir / BEST)
                _move_up(self.run_dir / BEST, self.run_dir)
        self.processes.barrier()
        epochs = self.progress.tokens / self.text.shards.num_targets
        return TrainingResult(self.run_dir, self.progress, epochs, report, stopped_early)


def open_run(run_dir: Path, settings: Mapping[str, Any], *, resume: bool) -> None:
    """Write ``run.json``, or check it against ``settings`` when resuming.

    Args:
        run_dir: Of the run.
        settings: JSON-able; under ``config`` stands what a resumed run must share with the first.
        resume: Whether a run that stands there is to be gone on with.

    Raises:
        FileExistsError: if there is a run and ``resume`` is not set.
        ConfigError: if the settings differ; names the first that does.
    """
    run_file = run_dir / RUN_FILE
    if run_file.exists():
        if not resume:
            raise FileExistsError(
                f"{run_dir} holds a training run already. Add --resume to go on with it, or choose "
                "another directory."
            )
        saved = json.loads(run_file.read_text(encoding="utf-8"))
        _check_same(saved["config"], settings["config"], run_file)
        return
    run_dir.mkdir(parents=True, exist_ok=True)
    aside = run_dir / f".writing-{RUN_FILE}"
    aside.write_text(
        json.dumps({"elmokit_version": elmokit.__version__, **settings}, indent=2), encoding="utf-8"
    )
    os.replace(aside, run_file)


def _check_same(saved: Any, given: Any, run_file: Path, path: str = "") -> None:
    """Raise for the first setting that differs from the run to be resumed."""
    if isinstance(saved, dict) and isinstance(given, dict):
        for key in sorted({*saved, *given}):
            _check_same(saved.get(key), given.get(key), run_file, f"{path}.{key}" if path else key)
    elif saved != given:
        raise ConfigError(
            f"{run_file}: this run has {path}={saved!r}, the command says {given!r}. "
            "Resume with the settings of the run, or start a new one in another directory."
        )


def _first_sentences(text: PreparedText, limit: int) -> list[list[str]]:
    if text.valid is None:
        return []
    chosen: list[list[str]] = []
    step = max(1, text.valid.num_sentences // max(1, limit))
    for index, sentence in enumerate(text.valid.sentences()):
        if index % step == 0 and len(chosen) < limit:
            chosen.append(sentence)
    return chosen


def _speed(since: tuple[int, float], now: Progress) -> float:
    return (now.tokens - since[0]) / max(1e-9, now.seconds - since[1])


def _row(report: StepReport[BiLMState], speed: float) -> dict[str, Any]:
    return {
        "step": report.progress.step,
        "tokens": report.progress.tokens,
        "loss": report.loss,
        **report.parts,
        "tokens_per_second": round(speed, 1),
        "learning_rate": report.learning_rate,
        "gradient_norm": report.gradient_norm,
        "seconds": round(report.progress.seconds, 3),
    }


def _validation_row(report: PerplexityReport) -> dict[str, Any]:
    return {f"valid_{name}": value for name, value in dataclasses.asdict(report).items()}


def _move_up(source: Path, target: Path) -> None:
    """Move a model's files into ``target``; ``config.json``, by which a model is known, comes last."""
    for path in sorted(source.iterdir(), key=lambda path: path.name == "config.json"):
        os.replace(path, target / path.name)
    shutil.rmtree(source)
