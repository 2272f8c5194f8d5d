"""What networks share that give an example one label: loss and prediction."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from elmokit.tasks.inputs.token_inputs import TokenBatch, TokenInputs
from elmokit.tasks.task import Labels, TaskModel


class Classifier(TaskModel):
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
        logits = self.logits(*batches)
        ids = [self._ids[example.label] for example in examples]
        gold = torch.tensor(ids, device=logits.device)
        return functional.cross_entropy(logits, gold) + self.inputs.penalty()

    def predict(self, batches: Sequence[TokenBatch], examples: Sequence[Any]) -> list[str]:
        return [self.labels[best] for best in self.logits(*batches).argmax(dim=1).tolist()]
