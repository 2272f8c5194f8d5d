"""Predictions of a task model, and their scores."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import torch

from elmokit.errors import InputError
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
    """Score the predictions for examples with gold answers; note their sampling units."""
    task = examples.task
    gold = [task.gold(example) for example in examples.examples]
    answers = predict(model, maker, examples, on_scored)
    pairs = zip(examples.examples, answers, strict=True)
    score = task.score(gold, [task.in_units_of_gold(*pair) for pair in pairs])
    return replace(score, sampling_units=task.number_sampling_units(examples.examples))


def missing_labels(task: Task[Any], labels: Labels, examples: Sequence[Any]) -> list[str]:
    """Return gold answers that the model cannot give; for spans, their types."""
    if not task.labels_are_answers:
        return []
    unknown = set(task.labels(examples)) - set(labels)
    return sorted({task.shown_label(label) for label in unknown})


def check_labels(path: Path, task: Task[Any], labels: Labels, examples: Sequence[Any]) -> None:
    """Warn, once, of labels of a file that the training set lacks.

    Raises:
        InputError: if it lacks all of them: the file is of another task or language.
    """
    unknown = missing_labels(task, labels, examples)
    found = {task.shown_label(label) for label in task.labels(examples)} - {""}
    if unknown and found <= set(unknown):
        known = sorted({task.shown_label(label) for label in labels} - {""})
        raise InputError(
            f"{path} has none of the labels that the training set has ({_some(known)}), but "
            f"{_some(unknown)}: it belongs to another task, or has other labels."
        )
    if unknown:
        _warn(
            f"{path} has labels that the training set lacks ({_some(unknown)}): they count as wrong"
        )


@cache
def _warn(message: str) -> None:
    log.warning("%s", message)


def _some(labels: Sequence[str]) -> str:
    return ", ".join(labels[:5]) + (", …" if len(labels) > 5 else "")
