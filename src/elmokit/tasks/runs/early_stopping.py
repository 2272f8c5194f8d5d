"""Early stopping: the weights of the best epoch, and when to stop."""

import torch
from torch import nn


class EarlyStopping:
    """Keeps the weights of a model's best epoch; ``patience`` counts epochs without a new best."""

    def __init__(self, model: nn.Module, *, patience: int) -> None:
        self._model, self._patience = model, patience
        self._best_score = -float("inf")
        self._best_weights: dict[str, torch.Tensor] = {}
        self._since_best = 0

    def update(self, score: float) -> bool:
        """Record the dev score of an epoch; return whether it is the best so far."""
        if self._best_weights and score <= self._best_score:
            self._since_best += 1
            return False
        weights = self._model.state_dict().items()
        self._best_weights = {name: value.clone() for name, value in weights}
        self._best_score, self._since_best = score, 0
        return True

    @property
    def is_over(self) -> bool:
        """Whether training should stop."""
        return self._since_best >= self._patience

    def restore(self) -> None:
        """Load the weights of the best epoch into the model."""
        self._model.load_state_dict(self._best_weights)
