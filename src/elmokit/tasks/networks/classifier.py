"""Loss and prediction of networks that give an example one label."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from elmokit.tasks.inputs.token_inputs import TokenBatch
from elmokit.tasks.task import TaskModel


class Classifier(TaskModel):
    """A network that scores labels."""

    @abstractmethod
    def logits(self, *batches: TokenBatch) -> Tensor:
        """Return the scores of labels: (B, Y)."""

    def loss(self, batches: Sequence[TokenBatch], examples: Sequence[Any]) -> Tensor:
        logits = self.logits(*batches)
        ids = [self._ids[example.label] for example in examples]
        gold = torch.tensor(ids, device=logits.device)
        return functional.cross_entropy(logits, gold) + self.inputs.penalty()

    def predict(self, batches: Sequence[TokenBatch], examples: Sequence[Any]) -> list[str]:
        return [self.labels[best] for best in self.logits(*batches).argmax(dim=1).tolist()]

    def predict_with_probs(
        self, batches: Sequence[TokenBatch], examples: Sequence[Any]
    ) -> list[tuple[str, dict[str, float]]]:
        """Return the answers, each with the probabilities of all labels (softmax)."""
        logits = self.logits(*batches)
        pairs = zip(
            logits.argmax(dim=1).tolist(), logits.double().softmax(dim=1).tolist(), strict=True
        )
        return [
            (self.labels[best], dict(zip(self.labels, row, strict=True))) for best, row in pairs
        ]
