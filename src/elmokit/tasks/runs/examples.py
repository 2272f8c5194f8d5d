"""The examples of a data set with the layers of their sentences: batches, predictions, scores.

The network is a `TaskModel` or a `FrozenTagger`: it makes batches of sentences and answers them.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from elmokit.errors import InputError
from elmokit.tasks.inputs.layer_cache import Sentence
from elmokit.tasks.inputs.task_bilm import LayersOf
from elmokit.tasks.task import Answer, Labels, Task, TaskScore, warn_once

BATCHES_SORTED_TOGETHER = 20
"""Training batches whose examples are sorted by length together, to reduce padding."""
PREDICTION_WORDS = 4000
"""Most padded words in a batch in prediction, and in any batch of a document's sentences."""


class Examples:
    """Examples of a task with the layers of their sentences; none if no biLM is read."""

    def __init__(
        self, task: Task[Any], examples: Sequence[Any], layers_of: LayersOf | None
    ) -> None:
        self.task, self.examples = task, list(examples)
        sentences = dict.fromkeys(s for example in examples for s in task.sentences(example))
        self._numbers = {words: number for number, words in enumerate(sentences)}
        self._layers = None if layers_of is None else layers_of(list(sentences))

    def __len__(self) -> int:
        return len(self.examples)

    def length(self, index: int) -> int:
        """Return the number of words in an example's longest sentence, or in a document."""
        lengths = [len(words) for words in self.task.sentences(self.examples[index])]
        return sum(lengths) if self.task.batched_by == "document" else max(lengths)

    def batches(self, model: Any, examples: Sequence[Any]) -> list[Any]:
        """Return the batches of examples, or of parts of them, as a network reads them."""
        groups = [self.task.sentences(example) for example in examples]
        if self.task.batched_by == "document":
            groups = _packed([words for group in groups for words in group], len)
        else:
            groups = zip(*groups, strict=True)
        return [model.make_batch(group, self._layers_of(group)) for group in groups]

    def _layers_of(self, group: Sequence[Sentence]) -> list[np.ndarray] | None:
        if self._layers is None:
            return None
        return [self._layers[self._numbers[words]] for words in group]


def choose_examples(
    task: Task[Any], examples: Sequence[Any], *, share: float, seed: int
) -> list[int]:
    """Return the examples with words to train on; a smaller share is a subset of a larger one."""
    indices = [at for at, example in enumerate(examples) if any(task.sentences(example))]
    random.Random(seed).shuffle(indices)
    return indices[: max(1, round(share * len(indices)))]


def training_batches(
    training: Examples, indices: Sequence[int], size: int, *, seed: str
) -> list[list[int]]:
    """Return an epoch's batches, in random order, each of examples of similar length."""
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


def _packed(items: Iterable[Any], length: Callable[[Any], int]) -> Iterator[list[Any]]:
    """Yield all items in order, in batches of at most `PREDICTION_WORDS`, or of a single one."""
    batch, longest = [], 1
    for item in items:
        # A longer sentence pads all others of its batch.
        longest = max(longest, length(item))
        if batch and (len(batch) + 1) * longest > PREDICTION_WORDS:
            yield batch
            batch, longest = [], max(1, length(item))
        batch.append(item)
    if batch:
        yield batch


def predict(model: Any, examples: Examples) -> list[Answer]:
    """Return the answer for each example, in order."""
    answers: dict[int, Answer] = {}
    # Sorted by length, to reduce padding.
    order = sorted(range(len(examples)), key=examples.length)
    for batch in _packed(order, examples.length):
        part = [examples.examples[index] for index in batch]
        batches = examples.batches(model, part)
        answers.update(zip(batch, model.answer(batches, part), strict=True))
    return [answers[index] for index in range(len(examples))]


def score_model(model: Any, examples: Examples) -> TaskScore:
    """Score the predictions for examples with gold answers; note their sampling units."""
    task = examples.task
    answers = zip(examples.examples, predict(model, examples), strict=True)
    gold = [task.gold(example) for example in examples.examples]
    score = task.score(gold, [task.in_units_of_gold(each, answer) for each, (answer, _) in answers])
    return replace(score, sampling_units=task.number_sampling_units(examples.examples))


def check_labels(path: Path, task: Task[Any], labels: Labels, examples: Sequence[Any]) -> None:
    """Warn, once, of labels of a file that the training set lacks; of spans, the types.

    `InputError` if it lacks all of them: the file is of another task or language.
    """
    if not task.labels_are_answers:
        return
    known = {task.shown_label(label) for label in labels} - {""}
    present = {task.shown_label(label) for label in task.labels(examples)} - {""}
    unknown = sorted(present - known)
    some = ", ".join(unknown[:5])
    if unknown and present <= set(unknown):
        raise InputError(
            f"{path} has none of the labels that the training set has "
            f"({', '.join(sorted(known)[:5])}), but {some}: it belongs to another task, or has "
            "other labels."
        )
    if unknown:
        warn_once(f"{path} has labels that the training set lacks ({some}): they count as wrong")
