"""Accuracy, macro F1 and figures by label of labels: one per example, or one per token."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from elmokit.errors import InputError


@dataclass(frozen=True, kw_only=True)
class PrecisionRecall:
    """Percentages of one label, or of spans; 0 where the denominator is 0."""

    precision: float
    """Share of the predicted that are correct."""
    recall: float
    """Share of the gold that are found."""
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
class LabelScore:
    """Label scores in percent; 0 where the denominator is 0."""

    accuracy: float
    """Share of all labels, so longer examples weigh more."""
    macro_f1: float
    """Mean F1 over all labels that occur in the predictions or the gold data."""
    correct: int
    total: int
    by_label: Mapping[str, PrecisionRecall]
    """Every label in the predictions or the gold data, in alphabetical order."""
    counts: NDArray[np.float64] = field(repr=False, compare=False)
    """A row per example: correct labels, labels."""


def score_labels(predicted: Sequence[str], gold: Sequence[str]) -> LabelScore:
    """Score one label per example.

    Raises:
        InputError: if the numbers of predicted and gold labels differ.
    """
    check_same_length(predicted, gold)
    return score_label_sequences([[label] for label in predicted], [[label] for label in gold])


def score_label_sequences(
    predicted: Sequence[Sequence[str]], gold: Sequence[Sequence[str]]
) -> LabelScore:
    """Score one label per token; an example without tokens has no effect.

    Raises:
        InputError: if predicted and gold differ in examples or tokens.
    """
    check_same_length(predicted, gold)
    counts = np.zeros((len(gold), 2))
    right: Counter[str] = Counter()
    guessed: Counter[str] = Counter()
    true: Counter[str] = Counter()
    for row, (guess, truth) in enumerate(zip(predicted, gold, strict=True)):
        check_same_tokens(guess, truth, example=row)
        hits = [label for label, other in zip(guess, truth, strict=True) if label == other]
        counts[row] = len(hits), len(truth)
        right.update(hits)
        guessed.update(guess)
        true.update(truth)
    totals = counts.sum(axis=0)
    by_label = {
        label: PrecisionRecall.of(right[label], guessed[label], true[label])
        for label in sorted({*guessed, *true})
    }
    f1 = [found.f1 for found in by_label.values()]
    return LabelScore(
        accuracy=float(accuracy_of(totals)), macro_f1=float(np.mean(f1)) if f1 else 0.0,
        correct=int(totals[0]), total=int(totals[1]), by_label=by_label, counts=counts,
    )  # fmt: skip


def accuracy_of(totals: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return accuracy in percent from summed rows of `LabelScore.counts`: (..., 2) -> (...)."""
    return percent(totals[..., 0], totals[..., 1])


def percent(
    part: NDArray[np.float64] | float, whole: NDArray[np.float64] | float
) -> NDArray[np.float64]:
    """Return ``100 * part / whole``, 0 where ``whole`` is 0."""
    safe = np.where(np.equal(whole, 0), 1.0, whole)
    return np.asarray(np.where(np.equal(whole, 0), 0.0, 100 * part / safe))


def check_same_length(predicted: Sequence[object], gold: Sequence[object]) -> None:
    """Raise InputError unless there is one prediction for each gold example."""
    if len(predicted) != len(gold):
        raise InputError(
            f"`predicted` must have one entry for each of the {len(gold)} gold examples, got "
            f"{len(predicted)}. Predict every example, in the order of `gold`."
        )


def check_same_tokens(predicted: Sequence[str], gold: Sequence[str], *, example: int) -> None:
    """Raise InputError unless an example has one predicted label for each gold label."""
    if len(predicted) != len(gold):
        raise InputError(
            f"Example {example} must have {len(gold)} predicted labels, one for each gold label, "
            f"got {len(predicted)}. Use the same tokenization for both."
        )
