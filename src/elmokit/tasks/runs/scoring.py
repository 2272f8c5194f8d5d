"""Predictions of a task model, and their scores."""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from elmokit.tasks.inputs.token_inputs import BatchMaker
from elmokit.tasks.runs.examples import Examples, prediction_batches
from elmokit.tasks.task import Labels, Task, TaskModel, TaskScore

log = logging.getLogger(__name__)

OnScored = Callable[[int, int], None]
"""Called with the number of examples done and in total."""


def predict(
    model: TaskModel,
    maker: BatchMaker,
    examples: Examples,
    on_scored: OnScored = lambda done, total: None,
    *,
    with_probs: bool = False,
) -> list[Any]:
    """Return the prediction for each example, in order; ``with_probs`` as the model's method."""
    model.eval()
    results: list[Any] = [None] * len(examples)
    done = 0
    on_scored(done, len(examples))
    with torch.no_grad():
        for batch in prediction_batches(examples):
            chosen = [examples.examples[index] for index in batch]
            answer = model.predict_with_probs if with_probs else model.predict
            answers = answer(examples.batch(maker, batch), chosen)
            for index, answer in zip(batch, answers, strict=True):
                results[index] = answer
            done += len(batch)
            on_scored(done, len(examples))
    return results


def score_model(
    model: TaskModel,
    maker: BatchMaker,
    examples: Examples,
    on_scored: OnScored = lambda done, total: None,
) -> TaskScore:
    """Score the predictions for examples with gold answers."""
    task = examples.task
    gold = [task.gold(example) for example in examples.examples]
    return task.score(gold, predict(model, maker, examples, on_scored))


def missing_labels(task: Task[Any], labels: Labels, examples: Sequence[Any]) -> list[str]:
    """Return gold answers that the model cannot give; for spans, their types."""
    if not task.labels_are_answers:
        return []
    unknown = set(task.labels(examples)) - set(labels)
    return sorted({task.shown_label(label) for label in unknown})


def warn_of_labels(path: Path, unknown: list[str]) -> None:
    """Say which labels of a file the training set lacks."""
    if unknown:
        log.warning(
            "%s has labels that the training set lacks (%s%s): they count as wrong",
            path, ", ".join(unknown[:5]), ", …" if len(unknown) > 5 else "",
        )  # fmt: skip
