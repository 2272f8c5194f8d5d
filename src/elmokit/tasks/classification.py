"""Base of tasks whose answer is one label."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from elmokit.errors import InputError
from elmokit.files.location import Location
from elmokit.metrics.accuracy import accuracy_of, score_labels
from elmokit.tasks.task import Labels, Sentence, Task, TaskScore, Tokenize

Example = TypeVar("Example")
MAX_TEXT_WORDS = 10_000
"""Of a text; attention over that many takes 400 MB for each of several tensors."""


class ClassificationTask(Task[Example]):
    """A task whose examples have a ``label``; scored by accuracy."""

    metric = "accuracy"
    score_from_counts = staticmethod(accuracy_of)

    def gold(self, example: Any) -> str:
        return example.label

    def labels(self, examples: Sequence[Any]) -> Labels:
        """Return the labels in alphabetical order."""
        return sorted({example.label for example in examples})

    def score(self, gold: Sequence[Any], predicted: Sequence[Any]) -> TaskScore:
        report = score_labels(predicted, gold)
        return TaskScore(self.metric, report.accuracy, {}, report.by_label, report.counts)


def check_length(sentence: Sentence) -> Sentence:
    """Return the words of a text.

    Raises:
        InputError: if they are more than `MAX_TEXT_WORDS`.
    """
    if len(sentence) > MAX_TEXT_WORDS:
        raise InputError(
            f"The text has {len(sentence)} words; at most {MAX_TEXT_WORDS} are allowed. Give a "
            "part of it."
        )
    return sentence


def read_at(location: Location, tokenize: Tokenize, text: str) -> Sentence:
    """Return the words of a text of a file.

    Raises:
        FormatError: with its location, if they are more than `MAX_TEXT_WORDS`.
    """
    try:
        return check_length(tuple(tokenize(text)))
    except InputError as error:
        raise location.error(str(error)) from error


def with_probs(label: str, probs: Mapping[str, float] | None) -> dict[str, Any]:
    """Return a label as JSON, with its probability and those of all labels, if they are known."""
    if probs is None:
        return {"label": label}
    return {"label": label, "probability": probs[label], "probabilities": dict(probs)}
