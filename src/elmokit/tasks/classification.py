"""Base of tasks whose answer is one label."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from elmokit.metrics.accuracy import accuracy_of, score_labels
from elmokit.tasks.sampling import lines_of
from elmokit.tasks.task import Labels, Task, TaskScore

Example = TypeVar("Example")


class ClassificationTask(Task[Example]):
    """A task whose examples have a ``label``; scored by accuracy."""

    metric = "accuracy"
    score_from_counts = staticmethod(accuracy_of)
    divided_by = staticmethod(lines_of)

    def gold(self, example: Any) -> str:
        return example.label

    def labels(self, examples: Sequence[Any]) -> Labels:
        return sorted({example.label for example in examples})

    def score(self, gold: Sequence[Any], predicted: Sequence[Any]) -> TaskScore:
        report = score_labels(predicted, gold)
        return TaskScore(self.metric, report.accuracy, {}, report.by_label, report.counts)


def with_probs(label: str, probs: Mapping[str, float] | None) -> dict[str, Any]:
    """Return a label as JSON, with its probability and those of all labels, if they are known."""
    if probs is None:
        return {"label": label}
    return {"label": label, "probability": probs[label], "probabilities": dict(probs)}
