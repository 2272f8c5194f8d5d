"""What tasks share whose answer is one label: loss, prediction, accuracy."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.nn import functional

from elmokit.metrics.accuracy import score_labels
from elmokit.tasks.inputs.token_inputs import TokenBatch, TokenInputs
from elmokit.tasks.task import Labels, Task, TaskModel, TaskScore

Example = TypeVar("Example")


class LabelModel(TaskModel):
    """A network that scores labels; a subclass says how.

    Args:
        inputs: What is read at each word.
        labels: In the order of their ids.
    """

    def __init__(self, inputs: TokenInputs, labels: Labels) -> None:
        super().__init__()
        self.inputs, self.labels = inputs, labels
        self._ids = {label: number for number, label in enumerate(labels)}

    @abstractmethod
    def logits(self, *batches: TokenBatch) -> Tensor:
        """Return a score for each example and label."""

    def loss(self, batches: Sequence[TokenBatch], examples: Sequence[Any]) -> Tensor:
        """Return the mean over examples, and the mixtures' penalty."""
        gold = torch.tensor([self._ids[example.label] for example in examples])
        return functional.cross_entropy(self.logits(*batches), gold) + self.inputs.penalty()

    def predict(self, batches: Sequence[TokenBatch], examples: Sequence[Any]) -> list[str]:
        """Return the label of each example."""
        return [self.labels[best] for best in self.logits(*batches).argmax(dim=1).tolist()]


class LabelTask(Task[Example]):
    """A task whose examples have a ``label``; scored by accuracy."""

    metric = "accuracy"

    def gold(self, example: Any) -> str:
        """Return the right answer."""
        return example.label

    def labels(self, examples: Sequence[Any]) -> Labels:
        """Return the labels, in the order of their ids."""
        return sorted({example.label for example in examples})

    def score(self, gold: Sequence[Any], predicted: Sequence[Any]) -> TaskScore:
        """Compare predictions with gold."""
        report = score_labels(predicted, gold)
        return TaskScore(self.metric, report.accuracy, {}, report.counts)
