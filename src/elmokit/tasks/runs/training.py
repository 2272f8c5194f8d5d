"""Training of a task model, epoch by epoch."""

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import nn

from elmokit.tasks.inputs.token_inputs import BatchMaker
from elmokit.tasks.runs.early_stopping import EarlyStopping
from elmokit.tasks.runs.examples import Examples, training_batches
from elmokit.tasks.runs.scoring import score_model
from elmokit.tasks.task import TaskModel, TaskScore
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
    """Epochs without a better dev score before training ends."""
    seed: int = 0
    """Of weights, order and dropout."""
    label_share: float = 1.0
    """Share of the training examples that is used, drawn with the seed."""
    finetune_bilm: bool = False
    """Train the biLM, too; its layers are then computed in every update."""
    bilm_learning_rate: float = 1e-4
    """Of a biLM that is trained."""

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "patience"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"`{name}` must be at least 1, got {value}")
        for name in ("learning_rate", "clip_norm", "bilm_learning_rate"):
            if not getattr(self, name) > 0:  # nor NaN
                raise ValueError(f"`{name}` must be above 0, got {getattr(self, name)}")
        if self.schedule not in SCHEDULES:
            raise ValueError(
                f"`schedule` must be one of {', '.join(SCHEDULES)}, got {self.schedule!r}"
            )
        if not 0 < self.label_share <= 1:
            raise ValueError(f"`label_share` must be above 0 and at most 1, got {self.label_share}")


@dataclass(frozen=True)
class EpochReport:
    """Result of one pass over the training set."""

    epoch: int
    loss: float
    """Mean over the epoch's updates."""
    dev: TaskScore
    is_best: bool
    seconds: float
    """Training and scoring so far."""


def train_model(
    model: TaskModel, maker: BatchMaker, training: Examples, dev: Examples, config: TaskTrainConfig
) -> Iterator[EpochReport]:
    """Train in place with Adam; at the end the model has the weights of the best epoch.

    Dropout depends on the seed alone, and PyTorch's random state is restored at the end.

    Raises:
        FloatingPointError: if the loss is not finite.
    """
    task, indices = training.task, choose_examples(training, config)
    batch_size = config.batch_size or task.default_batch_size
    num_batches = -(-len(indices) // batch_size)
    updates = OptimizerConfig(learning_rate=config.learning_rate, clip_norm=config.clip_norm)

    def objective(batch: list[int], carry: None, step: int) -> StepResult[None]:
        seed = derived_seed(config.seed, step)
        torch.manual_seed(seed)
        draw = random.Random(seed)
        chosen = [task.part(training.examples[index], draw) for index in batch]
        loss = model.loss(training.batch_of(maker, chosen), chosen)
        return StepResult(loss, {}, len(batch), carry)

    started = time.monotonic()
    progress, early_stopping = Progress(), EarlyStopping(model, patience=config.patience)
    optimizer = _build_optimizer(model, maker.bilm, config)
    cuda = [maker.device] if maker.device.type == "cuda" else []
    with torch.random.fork_rng(devices=cuda):
        for epoch in range(config.epochs):
            model.train()
            seed = f"{config.seed} {epoch}"
            reports = train(
                objective, iter(training_batches(training, indices, batch_size, seed=seed)),
                optimizer, carry=None, budget=Budget(steps=config.epochs * num_batches),
                schedule=SCHEDULES[config.schedule], config=updates, progress=progress,
            )  # fmt: skip
            losses = []
            try:
                for report in reports:
                    progress = report.progress
                    losses.append(report.loss)
            except FloatingPointError as error:
                raise FloatingPointError(
                    f"The loss is not finite in epoch {epoch + 1}. Lower train.learning_rate or "
                    "train.clip_norm."
                ) from error
            score = score_model(model, maker, dev)
            is_best, loss = early_stopping.update(score.value), float(np.mean(losses))
            yield EpochReport(epoch + 1, loss, score, is_best, time.monotonic() - started)
            if early_stopping.is_over:
                break
    early_stopping.restore()
    model.eval()


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


def choose_examples(training: Examples, config: TaskTrainConfig) -> list[int]:
    """Return the examples to train on; a smaller share is a subset of a larger one."""
    indices = [index for index in range(len(training)) if training.length(index)]
    random.Random(config.seed).shuffle(indices)
    return indices[: max(1, round(config.label_share * len(indices)))]
