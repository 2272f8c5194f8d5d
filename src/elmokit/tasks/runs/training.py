"""Training of a task model on biLM layers: epochs, early stopping, scoring."""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import nn

from elmokit.tasks.inputs.layer_cache import Sentence, SentenceLayers
from elmokit.tasks.inputs.token_inputs import BatchMaker, TokenBatch
from elmokit.tasks.task import Labels, Task, TaskModel, TaskScore
from elmokit.training.dropout import derived_seed
from elmokit.training.loop import OptimizerConfig, StepResult, train
from elmokit.training.schedules import Budget, Progress, ScheduleConfig

BATCHES_SORTED_TOGETHER = 20
"""Batches whose examples are put in order of length, so that little is padded."""
SCHEDULES = {
    "constant": ScheduleConfig(kind="constant", warmup_share=0.0),
    "cosine": ScheduleConfig(kind="cosine"),
}
PREDICTION_WORDS = 4000
"""Padded words of a batch in prediction, and of any batch of a document's sentences."""


@dataclass(frozen=True, kw_only=True)
class TaskTrainConfig:
    """How a task model is trained."""

    epochs: int = 20
    """Most passes over the training set."""
    batch_size: int | None = None
    """Examples in an update; none: as many as the task says."""
    learning_rate: float = 1e-3
    """Of Adam, at its highest."""
    schedule: Literal["constant", "cosine"] = "constant"
    """Of the rate; ``cosine``: it rises over the first twentieth of all epochs and falls to a
    twentieth of itself at their end."""
    clip_norm: float = 5.0
    """Bound on the global norm of the gradient."""
    patience: int = 4
    """Epochs without a better dev score before training ends."""
    seed: int = 0
    """Of weights, order and dropout."""
    label_share: float = 1.0
    """Share of the training examples that is used, drawn by the seed."""
    finetune_bilm: bool = False
    """Let the biLM learn, too. Its layers are then computed anew in every update."""
    bilm_learning_rate: float = 1e-4
    """Of a biLM that learns."""

    def __post_init__(self) -> None:
        """Refuse what cannot work."""
        for name in ("epochs", "batch_size", "patience"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"`{name}` must be at least 1")
        for name in ("learning_rate", "clip_norm", "bilm_learning_rate"):
            if getattr(self, name) <= 0:
                raise ValueError(f"`{name}` must be above 0")
        if self.schedule not in SCHEDULES:
            raise ValueError(f"`schedule` must be one of {', '.join(SCHEDULES)}")
        if not 0 < self.label_share <= 1:
            raise ValueError("`label_share` must be above 0 and at most 1")


class Examples:
    """Examples of a task with the layers of their sentences.

    Args:
        task: What they are.
        examples: In their order.
        keep: Returns the layers of distinct sentences; none: no biLM is read.
    """

    def __init__(
        self,
        task: Task[Any],
        examples: Sequence[Any],
        keep: Callable[[list[Sentence]], SentenceLayers | Sequence[np.ndarray]] | None,
    ) -> None:
        self.task, self.examples = task, list(examples)
        sentences = [task.sentences(example) for example in self.examples]
        self._lengths = [[len(words) for words in group] for group in sentences]
        distinct = dict.fromkeys(words for group in sentences for words in group)
        self._numbers = {words: number for number, words in enumerate(distinct)}
        self._layers = None if keep is None else keep(list(distinct))

    def __len__(self) -> int:
        return len(self.examples)

    def length(self, index: int) -> int:
        """Return the words of an example's longest sentence; all words of a document."""
        lengths = self._lengths[index]
        return sum(lengths) if self.task.batched_by == "document" else max(lengths)

    def batch(self, maker: BatchMaker, indices: Sequence[int]) -> list[TokenBatch]:
        """Return the padded sentences of some examples, as a `TaskModel` reads them."""
        return self.batch_of(maker, [self.examples[index] for index in indices])

    def batch_of(self, maker: BatchMaker, examples: Sequence[Any]) -> list[TokenBatch]:
        """The same for any examples whose sentences are among these, such as their parts."""
        sentences = [self.task.sentences(example) for example in examples]
        if self.task.batched_by == "document":
            groups = _by_padded_words([words for group in sentences for words in group])
        else:
            groups = zip(*sentences, strict=True)
        return [maker.make(group, self._layers_of(group)) for group in groups]

    def _layers_of(self, group: Sequence[Sentence]) -> list[np.ndarray] | None:
        if self._layers is None:
            return None
        return [self._layers[self._numbers[words]] for words in group]


@dataclass(frozen=True)
class EpochReport:
    """What one pass over the training set came to."""

    epoch: int
    loss: float
    """Mean over the epoch's updates."""
    dev: TaskScore
    is_best: bool
    seconds: float
    """Of training and scoring so far."""


def train_model(
    model: TaskModel,
    maker: BatchMaker,
    training: Examples,
    dev: Examples,
    config: TaskTrainConfig,
) -> Iterator[EpochReport]:
    """Train in place, epoch by epoch; at the end the model holds the weights of the best one.

    Adam; the loop is `elmokit.training.loop.train`. What dropout draws depends on the seed alone,
    and the state of PyTorch's random numbers is put back at the end.

    Raises:
        FloatingPointError: if the loss is not finite.
    """
    task, indices = training.task, _chosen(training, config)
    batch_size = config.batch_size or task.default_batch_size
    num_batches = -(-len(indices) // batch_size)
    optimizer_config = OptimizerConfig(
        learning_rate=config.learning_rate, clip_norm=config.clip_norm
    )

    def objective(batch: list[int], carry: None, step: int) -> StepResult[None]:
        seed = derived_seed(config.seed, step)
        torch.manual_seed(seed)
        draw = random.Random(seed)
        chosen = [task.part(training.examples[index], draw) for index in batch]
        loss = model.loss(training.batch_of(maker, chosen), chosen)
        return StepResult(loss, {}, len(batch), carry)

    started = time.monotonic()
    best: tuple[float, dict[str, torch.Tensor]] | None = None
    progress, since_best = Progress(), 0
    optimizer = _optimizer(model, maker.bilm, config)
    with torch.random.fork_rng(devices=[]):
        for epoch in range(config.epochs):
            model.train()
            reports = train(
                objective,
                iter(_batches(training, indices, batch_size, seed=f"{config.seed} {epoch}")),
                optimizer,
                carry=None,
                budget=Budget(steps=config.epochs * num_batches),
                schedule=SCHEDULES[config.schedule],
                config=optimizer_config,
                progress=progress,
            )
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
            is_best = best is None or score.value > best[0]
            if is_best:
                state = {name: value.clone() for name, value in model.state_dict().items()}
                best, since_best = (score.value, state), 0
            else:
                since_best += 1
            yield EpochReport(
                epoch + 1, float(np.mean(losses)), score, is_best, time.monotonic() - started
            )
            if since_best >= config.patience:
                break
    assert best is not None
    model.load_state_dict(best[1])
    model.eval()


def predict(model: TaskModel, maker: BatchMaker, examples: Examples) -> list[Any]:
    """Return the prediction for each example, in their order."""
    model.eval()
    order = sorted(range(len(examples)), key=examples.length)
    results: list[Any] = [None] * len(examples)
    with torch.no_grad():
        for batch in _by_words(examples, order):
            chosen = [examples.examples[index] for index in batch]
            answers = model.predict(examples.batch(maker, batch), chosen)
            for index, answer in zip(batch, answers, strict=True):
                results[index] = answer
    return results


def score_model(model: TaskModel, maker: BatchMaker, examples: Examples) -> TaskScore:
    """Score the predictions for examples with gold."""
    task = examples.task
    gold = [task.gold(example) for example in examples.examples]
    return task.score(gold, predict(model, maker, examples))


def missing_labels(task: Task[Any], labels: Labels, examples: Sequence[Any]) -> list[str]:
    """Return answers of examples that the model does not know, spans by their type alone."""
    if not task.labels_are_answers:
        return []
    unknown = set(task.labels(examples)) - set(labels)
    return sorted({label.partition("-")[2] or label for label in unknown})


def _optimizer(
    model: TaskModel, bilm: nn.Module | None, config: TaskTrainConfig
) -> torch.optim.Optimizer:
    """Return Adam; a biLM that learns is a group of its own, with its share of the rate."""
    slow = [] if bilm is None else list(bilm.parameters())
    slow_ids = {id(parameter) for parameter in slow}
    own = [p for p in model.parameters() if p.requires_grad and id(p) not in slow_ids]
    share = config.bilm_learning_rate / config.learning_rate
    groups = [{"params": own}, {"params": slow, "rate_share": share}]
    return torch.optim.Adam([group for group in groups if group["params"]], fused=True)


def _chosen(training: Examples, config: TaskTrainConfig) -> list[int]:
    """Return the examples that are used; a smaller share is part of a larger one."""
    indices = [index for index in range(len(training)) if training.length(index)]
    random.Random(config.seed).shuffle(indices)
    return indices[: max(1, round(config.label_share * len(indices)))]


def _batches(
    training: Examples, indices: Sequence[int], size: int, *, seed: str
) -> list[list[int]]:
    """Return the batches of an epoch: in random order, of sentences of like length."""
    draw = random.Random(seed)
    order = list(indices)
    draw.shuffle(order)
    together = size * BATCHES_SORTED_TOGETHER
    batches = []
    for start in range(0, len(order), together):
        part = sorted(order[start : start + together], key=training.length)
        batches += [part[at : at + size] for at in range(0, len(part), size)]
    draw.shuffle(batches)
    return batches


def _by_words(examples: Examples, order: Sequence[int]) -> Iterator[list[int]]:
    """Yield batches of at most `PREDICTION_WORDS` padded words; ``order`` is by length."""
    batch: list[int] = []
    for index in order:
        if batch and (len(batch) + 1) * max(1, examples.length(index)) > PREDICTION_WORDS:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def _by_padded_words(sentences: Sequence[Sentence]) -> Iterator[Sequence[Sentence]]:
    """Yield all sentences, one after another, in groups of at most `PREDICTION_WORDS` when padded.

    A longer sentence is a group by itself.
    """
    start = longest = 0
    for end, words in enumerate(sentences):
        longest = max(longest, len(words))
        if end > start and (end + 1 - start) * longest > PREDICTION_WORDS:
            yield sentences[start:end]
            start, longest = end, len(words)
    if start < len(sentences):
        yield sentences[start:]
