"""A linear softmax classifier trained to convergence: all that a probe may learn.

Every representation is treated alike: features standardized to mean 0 and variance 1, the same
Gaussian prior, L-BFGS until the gradient vanishes. The loss is convex, so the result does not
depend on a seed, an order or a stopping time.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int, Integer, Num
from torch import Tensor

MAX_ITERATIONS = 500
GRADIENT_TOLERANCE = 1e-4
"""Largest derivative of the mean loss (nats) that counts as zero."""
_HISTORY = 20
_MIN_DEVIATION = 1e-6
"""Features that vary less are constant."""
_BLOCK = 1 << 15


@dataclass(frozen=True)
class LinearProbe:
    """A trained classifier."""

    mean: Tensor
    """Of each feature in training (X,)."""
    deviation: Tensor
    weight: Tensor
    """(X, K)."""
    bias: Tensor
    num_iterations: int
    converged: bool
    """Whether the gradient vanished within `MAX_ITERATIONS`."""

    def predict(self, features: Num[np.ndarray, "N X"]) -> Int[np.ndarray, " N"]:
        """Return the label with the highest score for each row."""
        found = [np.zeros(0, dtype=np.int64)]
        for at in range(0, len(features), _BLOCK):
            x = torch.tensor(features[at : at + _BLOCK]).to(self.mean)
            scores = ((x - self.mean) / self.deviation) @ self.weight + self.bias
            found.append(scores.argmax(dim=1).cpu().numpy())
        return np.concatenate(found)


def fit_linear(
    features: Num[np.ndarray, "N X"],
    labels: Integer[np.ndarray, " N"],
    num_labels: int,
    *,
    device: torch.device | str = "cpu",
) -> LinearProbe:
    """Train on all rows: mean cross-entropy and a Gaussian prior ``|weight|^2 / 2N``.

    ``features`` are not modified; ``labels`` are 0 to ``num_labels`` - 1.

    Raises:
        ValueError: if there is no row.
    """
    if not len(features):
        raise ValueError(f"`features` must have at least one row, got shape {features.shape}.")
    x = torch.tensor(features, dtype=torch.float32, device=device)  # a copy, modified below
    mean = x.mean(dim=0)
    x -= mean
    deviation = x.std(dim=0, correction=0)
    deviation[deviation < _MIN_DEVIATION] = 1.0
    x /= deviation
    gold = torch.from_numpy(labels.astype(np.int64)).to(device)
    objective = _Objective(x, gold, num_labels)
    optimizer = torch.optim.LBFGS(
        [objective.weight, objective.bias],
        max_iter=MAX_ITERATIONS, max_eval=2 * MAX_ITERATIONS,
        tolerance_grad=GRADIENT_TOLERANCE, tolerance_change=0.0,
        history_size=_HISTORY, line_search_fn="strong_wolfe",
    )  # fmt: skip
    optimizer.step(objective)
    return LinearProbe(
        mean=mean, deviation=deviation, weight=objective.weight, bias=objective.bias,
        num_iterations=optimizer.state[objective.weight]["n_iter"],
        converged=objective.gradient_size() <= GRADIENT_TOLERANCE,
    )  # fmt: skip


class _Objective:
    """The loss and its gradient, for standardized features ``x``."""

    def __init__(self, x: Float[Tensor, "N X"], labels: Int[Tensor, " N"], num_labels: int) -> None:
        self.x, self.labels = x, labels
        self.weight = x.new_zeros(x.shape[1], num_labels)
        self.bias = x.new_zeros(num_labels)

    def __call__(self) -> float:
        """Set the gradients and return the loss."""
        num_rows = len(self.x)
        log_probs = torch.addmm(self.bias, self.x, self.weight).log_softmax(dim=1)  # (N, K)
        gold = self.labels.unsqueeze(1)
        loss = -log_probs.gather(1, gold).mean() + self.weight.square().sum() / (2 * num_rows)
        error = log_probs.exp_()
        error.scatter_add_(1, gold, torch.full_like(error[:, :1], -1.0))  # probability minus truth
        error /= num_rows
        self.weight.grad = self.x.T @ error + self.weight / num_rows
        self.bias.grad = error.sum(dim=0)
        return float(loss)

    def gradient_size(self) -> float:
        """Return the largest derivative where the optimizer stopped."""
        self()
        assert self.weight.grad is not None
        assert self.bias.grad is not None
        return max(float(self.weight.grad.abs().max()), float(self.bias.grad.abs().max()))
