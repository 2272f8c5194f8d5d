"""The gain of a predictor: how much better a linear regression with it predicts held-out words.

In nats of Gaussian log-likelihood a word, and in points of R². Source: Goodkind and Bicknell 2018;
Wilcox et al. 2020 (out-of-sample gains).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from elmokit.errors import InputError
from elmokit.shapes import Float, Int

NUM_ROUNDS = 2000
NUM_FOLDS = 10
MIN_GROUPS = 2 * NUM_FOLDS


@dataclass(frozen=True, kw_only=True)
class Gain:
    """What a predictor adds to the baseline, on words of sentences that were not fitted."""

    nats: float
    """Log-likelihood a word, with minus without the predictor."""
    low: float
    """95 % interval by bootstrap over the groups."""
    high: float
    r2_points: float
    """R² out of sample, in percent, with minus without the predictor."""
    slope: float
    """Change of the measure for each bit of the predictor, fitted on all words."""


def groups_of(
    sentence: Int[np.ndarray, " N"], item: Sequence[str] | None
) -> tuple[Int[np.ndarray, " N"], str]:
    """Return the number of what is held out together, and its name."""
    # words of one item (a story) are no independent evidence; fewer items cannot be held out
    if item is not None:
        names, numbers = np.unique(list(item), return_inverse=True)
        if len(names) >= MIN_GROUPS:
            return numbers, "item"
    return sentence, "sentence"


def gain(
    measure: Float[np.ndarray, " N"],
    baseline: Float[np.ndarray, "N B"],
    predictor: Float[np.ndarray, "N P"],
    group: Int[np.ndarray, " N"],
) -> Gain:
    """Return the gain of a predictor (its first column and those of the words before).

    Groups (`groups_of`) are dealt to ten folds in a fixed random order; every model of the same
    table has the same folds.

    Raises:
        InputError: for too few groups, and a measure that does not vary.
    """
    numbers, groups = np.unique(group, return_inverse=True)
    if len(numbers) < MIN_GROUPS:
        raise InputError(
            f"{len(numbers)} items or sentences are too few to hold some out: give {MIN_GROUPS}."
        )
    # dealt like cards: folds differ by one group at most
    fold = (np.random.default_rng(0).permutation(len(numbers)) % NUM_FOLDS)[groups]
    with_it = np.concatenate([baseline, predictor], axis=1)
    without, rest_without = _held_out(measure, baseline, fold)
    likelihood, rest = _held_out(measure, with_it, fold)
    difference = likelihood - without
    total = float(((measure - measure.mean()) ** 2).sum())
    # a bootstrap over groups: how often each is drawn weighs the sum over its words
    draws = np.random.default_rng(0).multinomial(
        len(numbers), np.full(len(numbers), 1 / len(numbers)), size=NUM_ROUNDS
    )
    shares = (draws @ np.bincount(groups, difference)) / (draws @ np.bincount(groups))
    low, high = np.quantile(shares, [0.025, 0.975])
    slopes = _fit(_standard(with_it, with_it), measure) / _scale(with_it)
    return Gain(
        nats=float(difference.mean()), low=float(low), high=float(high),
        r2_points=100 * float((rest_without**2).sum() - (rest**2).sum()) / total,
        slope=float(slopes[baseline.shape[1]]),
    )  # fmt: skip


def _held_out(
    measure: np.ndarray, columns: np.ndarray, fold: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return log-likelihood and error of every row under a regression fitted on other folds."""
    likelihood, errors = np.empty(len(measure)), np.empty(len(measure))
    for number in range(NUM_FOLDS):
        rows = fold == number
        train = columns[~rows]
        center = measure[~rows].mean()
        weights = _fit(_standard(train, train), measure[~rows] - center)
        fitted = measure[~rows] - center - _standard(train, train) @ weights
        variance = float((fitted**2).mean())
        if variance <= 1e-20 * float((measure**2).mean()):
            raise InputError("The measure is the same in all rows of a fold: it does not vary.")
        errors[rows] = measure[rows] - center - _standard(columns[rows], train) @ weights
        likelihood[rows] = -0.5 * (math.log(2 * math.pi * variance) + errors[rows] ** 2 / variance)
    return likelihood, errors


def _scale(columns: np.ndarray) -> np.ndarray:
    deviations = columns.std(axis=0)
    return np.where(deviations > 0, deviations, 1.0)


def _standard(columns: np.ndarray, reference: np.ndarray) -> np.ndarray:
    return (columns - reference.mean(axis=0)) / _scale(reference)


def _fit(columns: np.ndarray, measure: np.ndarray) -> np.ndarray:
    return np.linalg.lstsq(columns, measure - measure.mean(), rcond=None)[0]
