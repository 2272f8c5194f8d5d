"""Training of a task model, epoch by epoch, from the start or from a checkpoint."""

import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from elmokit.config import from_dict, known_part
from elmokit.jobs.job import Pieces
from elmokit.tasks.inputs.token_inputs import BatchMaker
from elmokit.tasks.runs.config import TaskTrainConfig
from elmokit.tasks.runs.examples import Examples, choose_examples, score_model, training_batches
from elmokit.tasks.task import TaskModel, TaskScore
from elmokit.training.checkpoints import (
    Checkpoint,
    restore_optimizer,
    restoring,
    save_checkpoint,
)
from elmokit.training.loop import StepResult, derived_seed, train
from elmokit.training.optimizers import OptimizerConfig
from elmokit.training.schedules import Budget, Progress, ScheduleConfig

SCHEDULES = {
    "constant": ScheduleConfig(kind="constant", warmup_share=0.0),
    "cosine": ScheduleConfig(kind="cosine"),
}


@dataclass(frozen=True)
class EpochReport:
    """Result of one pass over the training set; the last may be cut short by a limit of time."""

    epoch: int
    loss: float
    """Mean over the epoch's updates."""
    dev: TaskScore
    is_best: bool
    seconds: float
    """Training and scoring so far."""


@dataclass(frozen=True)
class TaskStep:
    """Progress of a training: an update, or the dev examples scored."""

    stage: Literal["training", "scoring dev"]
    done: int
    """Updates so far, or examples of this scoring."""
    total: int
    """Updates in all epochs, or examples."""
    epoch: int
    loss: float | None = None
    """Of the update."""


OnStep = Callable[[TaskStep], None]


def learned_weights(model: nn.Module) -> dict[str, Tensor]:
    """Return the state of a model without its frozen parameters, such as static vectors."""
    frozen = {name for name, value in model.named_parameters() if not value.requires_grad}
    return {name: value for name, value in model.state_dict().items() if name not in frozen}


def _copied(model: nn.Module) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in learned_weights(model).items()}


@dataclass(frozen=True, kw_only=True)
class _State:
    """Attributes of `TaskTraining` that the metadata of a checkpoint hold."""

    progress: Progress
    epoch: int
    losses: tuple[float, ...]
    scored_step: int
    best: EpochReport | None
    best_epoch_score: float | None
    since_best: int


class TaskTraining:
    """The training of a task model with Adam, in place; any moment of it can be saved.

    Order and dropout depend on the seed and the number of the update alone, so that a resumed
    training makes the same updates as one that was never stopped.

    Args:
        model: Trained in place.
        maker: Makes its batches.
        training: Training examples, with the layers of those that `choose_examples` returns.
        dev: Scored after each epoch.
        config: How to train.
        seconds: Limit of training and scoring, over all parts of a resumed run; none: no limit.
        checkpoint: Where to continue.
    """

    def __init__(
        self,
        model: TaskModel,
        maker: BatchMaker,
        training: Examples,
        dev: Examples,
        config: TaskTrainConfig,
        *,
        seconds: float | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        self.model, self.maker, self.training, self.dev = model, maker, training, dev
        self.config = config
        self.indices = choose_examples(training, share=config.label_share, seed=config.seed)
        self.batch_size = config.batch_size or training.task.default_batch_size
        self.num_batches = -(-len(self.indices) // self.batch_size)
        self.planned = Budget(steps=config.epochs * self.num_batches)
        self.budget = replace(self.planned, seconds=seconds)
        self.optimizer = _build_optimizer(model, maker.bilm, config)
        self.progress = Progress()
        self.epoch = 0
        """Finished epochs."""
        self.losses: list[float] = []
        """Of the updates in the unfinished epoch."""
        self.scored_step = 0
        """Last update that was scored on dev."""
        self.best: EpochReport | None = None
        """The epoch with the best score; after a resume, its ``dev.counts`` are not known."""
        self.best_weights: dict[str, Tensor] = {}
        """`learned_weights` with that score; empty before the first."""
        self.best_epoch_score: float | None = None
        """Of the whole epochs."""
        self.since_best = 0
        """Whole epochs since then."""
        if checkpoint is not None:
            with restoring(checkpoint):
                self._restore(checkpoint)
        self._started = time.monotonic() - self.progress.seconds

    def save(self, checkpoints: Pieces) -> None:
        """Write a checkpoint."""
        best = None
        if self.best is not None:
            dev = self.best.dev
            score = {"metric": dev.metric, "value": dev.value, "details": dev.details}
            best = vars(self.best) | {"dev": score}
        save_checkpoint(
            checkpoints, self.progress.step, model=learned_weights(self.model),
            optimizer=self.optimizer, carry=self.best_weights,
            metadata={
                "progress": asdict(replace(self.progress, seconds=self.seconds)),
                "epoch": self.epoch, "losses": self.losses, "scored_step": self.scored_step,
                "best": best, "best_epoch_score": self.best_epoch_score,
                "since_best": self.since_best,
            },
        )  # fmt: skip

    def _restore(self, checkpoint: Checkpoint) -> None:
        known = known_part(_State, checkpoint.metadata)
        state = from_dict(_State, known, source=str(checkpoint.path))
        if state.progress.step != state.epoch * self.num_batches + len(state.losses):
            raise ValueError("`progress.step` does not agree with `epoch` and `losses`")
        if (state.best is None) != (state.scored_step == 0):
            raise ValueError("`best` does not agree with `scored_step`")
        self._check_weights("model", checkpoint.model)
        self.model.load_state_dict(checkpoint.model, strict=False)  # not the frozen ones
        if not checkpoint.optimizer:  # Adam would begin anew in silence
            raise ValueError("optimizer.safetensors is empty")
        restore_optimizer(self.optimizer, checkpoint.optimizer)
        if state.best is not None:
            self._check_weights("carry", checkpoint.carry)
            self.best_weights = checkpoint.carry
        for name, value in vars(state).items():
            setattr(self, name, list(value) if name == "losses" else value)

    def _check_weights(self, name: str, tensors: Mapping[str, Tensor]) -> None:
        """Check the names and shapes of learned weights: `load_state_dict` would skip some."""
        saved, own = (
            {(key, tensor.shape) for key, tensor in each.items()}
            for each in (tensors, learned_weights(self.model))
        )
        if saved != own:
            key = min(saved ^ own)[0]
            raise ValueError(f"{name}.safetensors differs from the model in `{key}`")

    @contextmanager
    def best_model(self) -> Iterator[None]:
        """Give the model the weights of the best epoch for a while."""
        now = _copied(self.model)
        self.model.load_state_dict(self.best_weights, strict=False)
        try:
            yield
        finally:
            self.model.load_state_dict(now, strict=False)

    @property
    def is_complete(self) -> bool:
        """Whether the epochs or the patience are used up."""
        return self.epoch >= self.config.epochs or self.since_best >= self.config.patience

    @property
    def seconds(self) -> float:
        """Time of training and scoring so far."""
        return time.monotonic() - self._started

    def run(self, on_step: OnStep = lambda step: None) -> Iterator[EpochReport]:
        """Yield a report after each epoch; at the end the model has the weights of the best one.

        Before every report and every call of ``on_step`` the training can be saved. When the time
        is over, the unfinished epoch is scored, too; patience does not count it. PyTorch's random
        state is restored at the end.

        Raises:
            FloatingPointError: if the loss, a weight, or a score of tags on dev is not finite.
        """
        cuda = [self.maker.device] if self.maker.device.type == "cuda" else []
        with torch.random.fork_rng(devices=cuda):
            while not self.is_complete:
                self._update(on_step)
                if self.progress.step == self.scored_step:  # no time left
                    break
                yield self._score(on_step)
        self.model.load_state_dict(self.best_weights, strict=False)
        self.model.eval()

    def _update(self, on_step: OnStep) -> None:
        """Make the updates that are left in this epoch, or for which there is time."""
        self.model.train()
        seed = f"{self.config.seed} {self.epoch}"
        batches = training_batches(self.training, self.indices, self.batch_size, seed=seed)
        reports = train(
            self._objective, iter(batches[len(self.losses) :]), self.optimizer, carry=None,
            budget=self.budget, planned=self.planned, schedule=SCHEDULES[self.config.schedule],
            config=OptimizerConfig(
                learning_rate=self.config.learning_rate, clip_norm=self.config.clip_norm
            ),
            progress=replace(self.progress, seconds=self.seconds),
        )  # fmt: skip
        try:
            for report in reports:
                self.progress = report.progress
                self.losses.append(report.loss)
                total = self.config.epochs * self.num_batches
                on_step(
                    TaskStep("training", report.progress.step, total, self.epoch + 1, report.loss)
                )
        except FloatingPointError as error:
            raise _diverged("The loss is", self.epoch + 1) from error

    def _objective(self, batch: list[int], carry: None, step: int) -> StepResult[None]:
        seed = derived_seed(self.config.seed, step)
        torch.manual_seed(seed)
        draw = random.Random(seed)
        task, examples = self.training.task, self.training.examples
        parts = [task.part(examples[index], draw) for index in batch]
        loss = self.model.loss(self.training.batch_of(self.maker, parts), parts)
        return StepResult(loss, {}, len(batch), carry)

    def _score(self, on_step: OnStep) -> EpochReport:
        """Score the dev set; count the epoch if it is complete."""
        number = self.epoch + 1

        def on_scored(done: int, total: int) -> None:
            on_step(TaskStep("scoring dev", done, total, number))

        # of the last update only the loss before it is known
        if not all(value.isfinite().all() for value in learned_weights(self.model).values()):
            raise _diverged("The weights are", number)
        try:
            score = score_model(self.model, self.maker, self.dev, on_scored)
        except FloatingPointError as error:
            raise _diverged("Scores of the dev set are", number) from error
        is_whole = len(self.losses) == self.num_batches
        is_best = self.best is None or score.value > self.best.dev.value
        report = EpochReport(number, float(np.mean(self.losses)), score, is_best, self.seconds)
        if is_best:
            self.best, self.best_weights = report, _copied(self.model)
        self.scored_step = self.progress.step
        if is_whole:
            self._count_epoch(score.value)
        return report

    def _count_epoch(self, score: float) -> None:
        """Count a whole epoch, and those since the best one, which patience is compared with.

        An epoch that a limit of time cut short does not count, neither for patience nor against
        it, so that a run in pieces ends where an uninterrupted one does. Neither do epochs before
        the first score above 0: with little data, span taggers find nothing for a while.
        """
        self.epoch, self.losses = self.epoch + 1, []
        before = self.best_epoch_score
        is_better = before is None or score > before
        self.best_epoch_score = score if before is None else max(before, score)
        has_begun = self.best_epoch_score > 0
        self.since_best = self.since_best + 1 if has_begun and not is_better else 0


def _diverged(what: str, epoch: int) -> FloatingPointError:
    return FloatingPointError(
        f"{what} not finite in epoch {epoch}. Lower train.learning_rate or train.clip_norm."
    )


def _build_optimizer(
    model: TaskModel, bilm: nn.Module | None, config: TaskTrainConfig
) -> torch.optim.Optimizer:
    """Return Adam; a biLM that is trained is a group of its own, with its share of the rate."""
    slow = [] if bilm is None else list(bilm.parameters())
    slow_ids = {id(parameter) for parameter in slow}
    own = [p for p in model.parameters() if p.requires_grad and id(p) not in slow_ids]
    share = config.bilm_learning_rate / config.learning_rate
    groups = [{"params": own}, {"params": slow, "rate_share": share}]
    return torch.optim.Adam([group for group in groups if group["params"]], fused=True)
