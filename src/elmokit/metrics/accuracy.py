"""Labels, one per example or one per token: counts, accuracy, and the figures of each label.

In all metrics a function counts, a row per example, and another one turns summed rows into a
percentage: significance tests resample the rows and never see the examples.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class PrecisionRecall:
    """Percentages of one label, or of spans; 0 where the denominator is 0."""

    precision: float  # share of the predicted that are correct
    recall: float  # share of the gold that are found
    f1: float
    correct: int
    predicted: int
    gold: int

    @classmethod
    def of(cls, correct: float, predicted: float, gold: float) -> "PrecisionRecall":
        """Return the percentages of these counts."""
        return cls(
            precision=float(percent(correct, predicted)),
            recall=float(percent(correct, gold)),
            f1=float(percent(2 * correct, predicted + gold)),
            correct=int(correct), predicted=int(predicted), gold=int(gold),
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class LabelCounts:
    """What was counted in some examples."""

    rows: Counts  # A row per example: ``accuracy_of`` or ``f1_of`` makes a score of their sum
    by_label: Mapping[str, PrecisionRecall]
    """Every label in the predictions or the gold data, in alphabetical order."""


def count_labels(predicted: Sequence[Sequence[str]], gold: Sequence[Sequence[str]]) -> LabelCounts:
    """Count correct labels and all labels of each example, which has one label per token."""
    rows = np.zeros((len(gold), 2))
    totals = Counter(), Counter(), Counter()
    for row, (guesses, truths) in enumerate(zip(predicted, gold, strict=True)):
        hits = [guess for guess, truth in zip(guesses, truths, strict=True) if guess == truth]
        rows[row] = len(hits), len(truths)
        for total, labels in zip(totals, (hits, guesses, truths), strict=True):
            total.update(labels)
    return LabelCounts(rows=rows, by_label=figures_by_label(*totals))


def figures_by_label(
    correct: Counter[str], predicted: Counter[str], gold: Counter[str]
) -> dict[str, PrecisionRecall]:
    """Return the percentages of every label that was predicted or is in the gold data."""
    return {
        label: PrecisionRecall.of(correct[label], predicted[label], gold[label])
        for label in sorted({*predicted, *gold})
    }


def accuracy_of(totals: Counts) -> Counts:
    """Return accuracy in percent from summed rows of `count_labels`: (..., 2) -> (...)."""
    return percent(totals[..., 0], totals[..., 1])


def percent(part: Counts | float, whole: Counts | float) -> Counts:
    """Return ``100 * part / whole``, 0 where ``whole`` is 0."""
    safe = np.where(np.equal(whole, 0), 1.0, whole)
    return np.asarray(np.where(np.equal(whole, 0), 0.0, 100 * part / safe))
