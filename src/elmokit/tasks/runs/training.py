"""Training of a task model, epoch by epoch, from the start or from a checkpoint."""

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from elmokit.config import from_dict
from elmokit.jobs.job import Pieces
from elmokit.tasks.networks.encoder import TaskModel
from elmokit.tasks.runs.examples import Examples, score_model, training_batches
from elmokit.tasks.runs.run_dir import TaskTrainConfig
from elmokit.tasks.task import TaskScore
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
    """Result of one pass over the training set."""

    epoch: int
    loss: float  # mean over the epoch's updates
    dev: TaskScore
    is_best: bool
    seconds: float  # training and scoring so far


@dataclass(frozen=True)
class TaskStep:
    """An update: its number, that of all epochs together, its epoch from 1, the loss before it."""

    done: int
    total: int
    epoch: int
    loss: float


OnStep = Callable[[TaskStep], None]


@dataclass
class TrainingState:
    """How far a training is: what a checkpoint holds besides tensors."""

    progress: Progress
    epoch: int  # finished epochs
    losses: list[float]  # of the updates in the unfinished epoch
    best: EpochReport | None
    """The epoch with the best score; after a resume, its ``dev.counts`` are not known."""
    since_best: int  # epochs since then


class TaskTraining:
    """The training of a task model with Adam, in place; any moment of it can be saved.

    Order and dropout depend on the seed and the number of the update alone, so that a resumed
    training makes the same updates. Epochs shuffle ``order``, by default all training examples.
    """

    def __init__(
        self,
        model: TaskModel,
        training: Examples,
        dev: Examples,
        config: TaskTrainConfig,
        *,
        order: list[int] | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        self.model, self.training, self.dev, self.config = model, training, dev, config
        self.order = list(range(len(training))) if order is None else order
        self.batch_size = config.batch_size or training.task.default_batch_size
        self.num_batches = -(-len(self.order) // self.batch_size)
        self.budget = Budget(steps=config.epochs * self.num_batches)
        parameters = [p for p in model.parameters() if p.requires_grad]
        self.optimizer = torch.optim.Adam(parameters, fused=True)
        self.state = TrainingState(Progress(), 0, [], None, 0)
        self.best_weights: dict[str, Tensor] = {}
        """What is trained, in the best epoch; empty before the first."""
        if checkpoint is not None:
            with restoring(checkpoint):
                source = str(checkpoint.path)
                self.state = from_dict(TrainingState, checkpoint.metadata, source=source)
                self.best_weights = checkpoint.carry
                for weights in (checkpoint.carry, checkpoint.model):  # the former to check it
                    model.load_state_dict(model.state_dict() | weights)
                restore_optimizer(self.optimizer, checkpoint.optimizer)
        self.saved_step = self.state.progress.step
        self._started = time.monotonic() - self.state.progress.seconds

    def save(self, checkpoints: Pieces) -> None:
        best, progress = self.state.best, replace(self.state.progress, seconds=self.seconds)
        record = vars(self.state) | {"progress": asdict(progress)}
        if best is not None:
            dev = {name: getattr(best.dev, name) for name in ("metric", "value", "details")}
            record["best"] = vars(best) | {"dev": dev}
        save_checkpoint(
            checkpoints, progress.step, model=_trained(self.model), optimizer=self.optimizer,
            carry=self.best_weights, metadata=record,
        )  # fmt: skip
        self.saved_step = progress.step

    @property
    def is_complete(self) -> bool:
        """Whether the epochs or the patience are used up."""
        state, config = self.state, self.config
        return state.epoch >= config.epochs or state.since_best >= config.patience

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started

    def run(self, on_step: OnStep = lambda step: None) -> Iterator[EpochReport]:
        """Yield a report after each epoch; at the end the model has the weights of the best one.

        At every report and every call of ``on_step`` the training can be saved.
        """
        cuda = [self.model.device] if self.model.device.type == "cuda" else []
        with torch.random.fork_rng(devices=cuda):
            while not self.is_complete:
                try:
                    self._update(on_step)
                    report = self._score()
                except FloatingPointError as error:
                    raise FloatingPointError(f"{error} In epoch {self.state.epoch + 1}.") from error
                yield report
        self.model.load_state_dict(self.model.state_dict() | self.best_weights)
        self.model.eval()

    def _update(self, on_step: OnStep) -> None:
        """Make the updates that are left in this epoch."""
        self.model.train()
        state, config = self.state, self.config
        batches = training_batches(
            self.training, self.order, self.batch_size, seed=f"{config.seed} {state.epoch}"
        )
        reports = train(
            self._objective, iter(batches[len(state.losses) :]), self.optimizer, carry=None,
            budget=self.budget, schedule=SCHEDULES[config.schedule],
            config=OptimizerConfig(
                learning_rate=config.learning_rate, clip_norm=config.clip_norm
            ),
            progress=replace(state.progress, seconds=self.seconds),
        )  # fmt: skip
        total, epoch = config.epochs * self.num_batches, state.epoch + 1
        for report in reports:
            state.progress = report.progress
            state.losses.append(report.loss)
            on_step(TaskStep(report.progress.step, total, epoch, report.loss))

    def _objective(self, batch: list[int], carry: None, step: int) -> StepResult[None]:
        seed = derived_seed(self.config.seed, step)
        torch.manual_seed(seed)
        draw = random.Random(seed)
        task, examples = self.training.task, self.training.examples
        parts = [task.part(examples[index], draw) for index in batch]
        loss = self.model.loss(self.training.batches(self.model, parts), parts)
        return StepResult(loss, {}, len(batch), carry)

    def _score(self) -> EpochReport:
        """Score the dev set and count the epoch."""
        state, number = self.state, self.state.epoch + 1
        # Of the last update only the loss before it is known.
        weights = _trained(self.model)
        if not all(value.isfinite().all() for value in weights.values()):
            raise FloatingPointError("The weights are not finite.")
        score = score_model(self.model, self.dev)
        is_best = state.best is None or score.value > state.best.dev.value
        report = EpochReport(number, float(np.mean(state.losses)), score, is_best, self.seconds)
        if state.best is None or is_best:
            state.best = report
            self.best_weights = {name: value.clone() for name, value in weights.items()}
        state.epoch, state.losses = number, []
        # Epochs before the first score above 0 do not count against it: with little data, span
        # taggers find nothing for a while.
        is_better = is_best or state.best.dev.value <= 0
        state.since_best = 0 if is_better else state.since_best + 1
        return report


def _trained(model: nn.Module) -> dict[str, Tensor]:
    """Return the state of a model without its frozen parameters, such as static vectors."""
    frozen = {name for name, value in model.named_parameters() if not value.requires_grad}
    return {name: value for name, value in model.state_dict().items() if name not in frozen}
