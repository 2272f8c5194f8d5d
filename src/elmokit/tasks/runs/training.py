"""Training of a task model, epoch by epoch, from the start or from a checkpoint."""

import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import nn

from elmokit.config import from_dict, known_part
from elmokit.field_checks import SEEDS, check_choices, check_ranges
from elmokit.tasks.inputs.token_inputs import BatchMaker
from elmokit.tasks.runs.early_stopping import EarlyStopping, learned_weights
from elmokit.tasks.runs.examples import Examples, choose_examples, training_batches
from elmokit.tasks.runs.scoring import score_model
from elmokit.tasks.task import TaskModel, TaskScore
from elmokit.training.checkpoints import (
    Checkpoint,
    restore_optimizer,
    restoring,
    save_checkpoint,
)
from elmokit.training.dropout import derived_seed
from elmokit.training.loop import StepResult, train
from elmokit.training.optimizers import OptimizerConfig
from elmokit.training.schedules import Budget, Progress, ScheduleConfig

SCHEDULES = {
    "constant": ScheduleConfig(kind="constant", warmup_share=0.0),
    "cosine": ScheduleConfig(kind="cosine"),
}


@dataclass(frozen=True, kw_only=True)
class TaskTrainConfig:
    """How a task model is trained."""

    epochs: int = 20
    """Most passes over the training set."""
    batch_size: int | None = None
    """Examples per update; none: the task's default."""
    learning_rate: float = 1e-3
    """Peak rate of Adam."""
    schedule: Literal["constant", "cosine"] = "constant"
    """Of the rate; ``cosine`` rises over the first twentieth of all epochs and falls to a twentieth
    of the peak at their end."""
    clip_norm: float = 5.0
    """Bound on the global norm of the gradient."""
    patience: int = 4
    """Whole epochs without a better dev score before training ends."""
    seed: int = 0
    """Of weights, order and dropout."""
    label_share: float = 1.0
    """Share of the training examples that is used, drawn with the seed."""
    lowercase_share: float = 0.0
    """Share of the training sentences that are read a second time, in lower case; drawn with the
    seed. For tasks that tag words."""
    finetune_bilm: bool = False
    """Train the biLM, too; its layers are then computed in every update."""
    bilm_learning_rate: float = 1e-4
    """Of a biLM that is trained."""

    def __post_init__(self) -> None:
        check_choices(self)
        check_ranges(self, seed=SEEDS)
        for name in ("epochs", "batch_size", "patience"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"`{name}` must be at least 1, got {value}")
        for name in ("learning_rate", "clip_norm", "bilm_learning_rate"):
            if not getattr(self, name) > 0:  # nor NaN
                raise ValueError(f"`{name}` must be above 0, got {getattr(self, name)}")
        if not 0 < self.label_share <= 1:
            raise ValueError(f"`label_share` must be above 0 and at most 1, got {self.label_share}")
        if not 0 <= self.lowercase_share <= 1:
            raise ValueError(
                f"`lowercase_share` must be between 0 and 1, got {self.lowercase_share}"
            )
        if self.lowercase_share and self.label_share < 1:
            raise ValueError(
                f"`lowercase_share` needs all labels, a `label_share` of 1, got {self.label_share}"
            )


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


@dataclass(frozen=True, kw_only=True)
class _State:
    """What the metadata of a checkpoint says of `TaskTraining` and its `EarlyStopping`."""

    progress: Progress
    epoch: int
    losses: tuple[float, ...]
    scored_step: int
    best_score: float | None
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

    Raises:
        FormatError: if the checkpoint is damaged or of another model.
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
        self.early_stopping = EarlyStopping(model, patience=config.patience)
        self.progress = Progress()
        self.epoch = 0
        """Finished epochs."""
        self.losses: list[float] = []
        """Of the updates in the unfinished epoch."""
        self.scored_step = 0
        """Last update that was scored on dev."""
        if checkpoint is not None:
            self._restore(checkpoint)
        self._started = time.monotonic() - self.progress.seconds

    def save(self, folder: Path, metadata: Mapping[str, Any]) -> None:
        """Write a checkpoint, with further metadata."""
        stopping = self.early_stopping
        state = _State(
            progress=replace(self.progress, seconds=self.seconds), epoch=self.epoch,
            losses=tuple(self.losses), scored_step=self.scored_step,
            best_score=stopping.best_score if stopping.best_weights else None,
            best_epoch_score=stopping.best_epoch_score if self.epoch else None,
            since_best=stopping.since_best,
        )  # fmt: skip
        save_checkpoint(
            folder, self.progress.step, model=learned_weights(self.model),
            optimizer=self.optimizer, carry=stopping.best_weights,
            metadata={**asdict(state), **metadata},
        )  # fmt: skip

    def _restore(self, checkpoint: Checkpoint) -> None:
        source = str(checkpoint.path)
        with restoring(checkpoint):
            state = from_dict(_State, known_part(_State, checkpoint.metadata), source=source)
            if state.progress.step != state.epoch * self.num_batches + len(state.losses):
                raise ValueError("`progress.step` does not agree with `epoch` and `losses`")
            self._check_weights("model", checkpoint.model)
            self.model.load_state_dict(checkpoint.model, strict=False)  # not the frozen ones
            restore_optimizer(self.optimizer, checkpoint.optimizer)
            self._check_optimizer()
            if state.best_score is not None:
                self._check_weights("carry", checkpoint.carry)
                self.early_stopping.resume(
                    checkpoint.carry, state.best_score, state.best_epoch_score, state.since_best
                )
        self.progress, self.scored_step = state.progress, state.scored_step
        self.epoch, self.losses = state.epoch, list(state.losses)

    def _check_weights(self, name: str, tensors: Mapping[str, torch.Tensor]) -> None:
        """Check the names and shapes of learned weights that a checkpoint holds."""
        saved, own = (
            {(key, tensor.shape) for key, tensor in each.items()}
            for each in (tensors, learned_weights(self.model))
        )
        if saved != own:
            key = min(saved ^ own)[0]
            raise ValueError(f"{name}.safetensors differs from the model in `{key}`")

    def _check_optimizer(self) -> None:
        """Check the restored averages of Adam."""
        found = self.optimizer.state.items()
        averages = [
            (key, state[name]) for key, state in found for name in ("exp_avg", "exp_avg_sq")
        ]
        if not averages or any(key.shape != average.shape for key, average in averages):
            raise ValueError("optimizer.safetensors lacks weights, or has other shapes")

    @property
    def is_complete(self) -> bool:
        """Whether the epochs or the patience are used up."""
        return self.epoch >= self.config.epochs or self.early_stopping.is_over

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
        self.early_stopping.restore()
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
        chosen = [task.part(examples[index], draw) for index in batch]
        loss = self.model.loss(self.training.batch_of(self.maker, chosen), chosen)
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
        is_best = self.early_stopping.update(score.value, is_whole_epoch=is_whole)
        loss, self.scored_step = float(np.mean(self.losses)), self.progress.step
        if is_whole:
            self.epoch, self.losses = number, []
        return EpochReport(number, loss, score, is_best, self.seconds)


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
