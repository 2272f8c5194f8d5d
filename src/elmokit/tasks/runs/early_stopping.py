"""Early stopping: the weights of the best epoch, and when to stop."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import nn


def learned_weights(model: nn.Module) -> dict[str, torch.Tensor]:
    """Return the state of a model without its frozen parameters, such as static vectors."""
    frozen = {name for name, value in model.named_parameters() if not value.requires_grad}
    return {name: value for name, value in model.state_dict().items() if name not in frozen}


class EarlyStopping:
    """Keeps the weights with the best score; ``patience`` counts whole epochs without a new best.

    Epochs that a limit of time cut short do not count, neither for patience nor against it, so that
    a run in pieces ends where an uninterrupted one does. Neither do epochs before the first score
    above 0: with little data, span taggers find nothing for a while.
    """

    def __init__(self, model: nn.Module, *, patience: int) -> None:
        self._model, self._patience = model, patience
        self.best_score = -float("inf")
        self.best_weights: dict[str, torch.Tensor] = {}
        """`learned_weights` with that score; empty before the first."""
        self.best_epoch_score = -float("inf")
        """Of the whole epochs."""
        self.since_best = 0
        """Whole epochs since then."""

    def resume(
        self, best_weights: Mapping[str, torch.Tensor], best_score: float,
        best_epoch_score: float | None, since_best: int,
    ) -> None:  # fmt: skip
        """Continue from a checkpoint; ``best_epoch_score`` is none before the first whole epoch."""
        self.best_weights, self.best_score = dict(best_weights), best_score
        if best_epoch_score is not None:
            self.best_epoch_score, self.since_best = best_epoch_score, since_best

    def update(self, score: float, *, is_whole_epoch: bool) -> bool:
        """Record a dev score; return whether it is the best so far."""
        if is_whole_epoch:
            is_better = score > self.best_epoch_score
            self.best_epoch_score = max(self.best_epoch_score, score)
            has_begun = self.best_epoch_score > 0
            self.since_best = self.since_best + 1 if has_begun and not is_better else 0
        if self.best_weights and score <= self.best_score:
            return False
        weights = learned_weights(self._model).items()
        self.best_weights = {name: value.clone() for name, value in weights}
        self.best_score = score
        return True

    @property
    def is_over(self) -> bool:
        """Whether training should stop."""
        return self.since_best >= self._patience

    @contextmanager
    def best_model(self) -> Iterator[None]:
        """Give the model the weights of the best epoch for a while."""
        now = {name: value.clone() for name, value in learned_weights(self._model).items()}
        self.restore()
        try:
            yield
        finally:
            self._model.load_state_dict(now, strict=False)

    def restore(self) -> None:
        """Load the weights of the best epoch, if there is one, into the model."""
        self._model.load_state_dict(self.best_weights, strict=False)
