"""Early stopping: the weights of the best epoch, and when to stop."""

from collections.abc import Mapping

import torch
from torch import nn


def learned_weights(model: nn.Module) -> dict[str, torch.Tensor]:
    """Return the state of a model without its frozen parameters, such as static vectors."""
    frozen = {name for name, value in model.named_parameters() if not value.requires_grad}
    return {name: value for name, value in model.state_dict().items() if name not in frozen}


class EarlyStopping:
    """Keeps the weights of a model's best epoch; ``patience`` counts epochs without a new best."""

    def __init__(self, model: nn.Module, *, patience: int) -> None:
        self._model, self._patience = model, patience
        self.best_score = -float("inf")
        self.best_weights: dict[str, torch.Tensor] = {}
        """`learned_weights` of the best epoch; empty before the first."""
        self.since_best = 0

    def resume(
        self, best_weights: Mapping[str, torch.Tensor], best_score: float, since_best: int
    ) -> None:
        """Continue from a checkpoint."""
        self.best_weights, self.best_score = dict(best_weights), best_score
        self.since_best = since_best

    def update(self, score: float) -> bool:
        """Record the dev score of an epoch; return whether it is the best so far."""
        if self.best_weights and score <= self.best_score:
            self.since_best += 1
            return False
        weights = learned_weights(self._model).items()
        self.best_weights = {name: value.clone() for name, value in weights}
        self.best_score, self.since_best = score, 0
        return True

    @property
    def is_over(self) -> bool:
        """Whether training should stop."""
        return self.since_best >= self._patience

    def restore(self) -> None:
        """Load the weights of the best epoch, if there is one, into the model."""
        self._model.load_state_dict(self.best_weights, strict=False)
