"""Early stopping: the weights of the best epoch so far, and whether it is time to stop."""

import torch
from torch import nn


class EarlyStopping:
    """Keeps the weights of a model's best epoch.

    Args:
        model: Trained elsewhere.
        patience: Epochs without a better score before training ends.
    """

    def __init__(self, model: nn.Module, *, patience: int) -> None:
        self._model, self._patience = model, patience
        self._best_score = -float("inf")
        self._best_weights: dict[str, torch.Tensor] = {}
        self._since_best = 0

    def update(self, score: float) -> bool:
        """Take the dev score of an epoch; return whether it is the best so far."""
        if self._best_weights and score <= self._best_score:
            self._since_best += 1
            return False
        weights = self._model.state_dict().items()
        self._best_weights = {name: value.clone() for name, value in weights}
        self._best_score, self._since_best = score, 0
        return True

    @property
    def is_over(self) -> bool:
        """Whether `patience` epochs in a row were not the best."""
        return self._since_best >= self._patience

    def restore(self) -> None:
        """Put the weights of the best epoch back into the model."""
        self._model.load_state_dict(self._best_weights)
