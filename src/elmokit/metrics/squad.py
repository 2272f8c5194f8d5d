"""Exact match and F1 of answers: SQuAD 1.1 (words) and KorQuAD 1.0 (characters)."""

import re
import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from elmokit.errors import InputError
from elmokit.metrics.accuracy import check_same_length, percent

AnswerStyle = Literal["squad", "korquad"]

_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_KOREAN_MARKS = str.maketrans(dict.fromkeys("'\"‘’《》<>〈〉()", " "))


@dataclass(frozen=True, kw_only=True)
class AnswerScore:
    """Means over questions in percent, each scored by its best gold answer."""

    exact_match: float
    f1: float
    questions: int
    counts: NDArray[np.float64] = field(repr=False, compare=False)
    """A row per question: exact match (0 or 1), F1 (0 to 1), 1."""


def normalize_squad(answer: str) -> str:
    """Lower-case, delete ASCII punctuation and articles, collapse white space."""
    return " ".join(_ARTICLES.sub(" ", answer.lower().translate(_NO_PUNCTUATION)).split())


def normalize_korquad(answer: str) -> str:
    """Replace quotes and brackets by spaces, then as `normalize_squad`, but keep articles."""
    return " ".join(answer.translate(_KOREAN_MARKS).lower().translate(_NO_PUNCTUATION).split())


def score_answers(
    predicted: Sequence[str | None], gold: Sequence[Sequence[str]], *, style: AnswerStyle
) -> AnswerScore:
    """Score one answer per question against all its gold answers; None (missing) scores 0.

    As in the official scripts, two answers that are empty after normalization match with F1 0.

    Raises:
        InputError: if the numbers of questions differ, or a question has no gold answer.
    """
    check_same_length(predicted, gold)
    counts = np.zeros((len(gold), 3))
    for row, (guess, answers) in enumerate(zip(predicted, gold, strict=True)):
        if isinstance(answers, str) or not answers:
            raise InputError(
                f"Question {row} must have a list of at least one gold answer, got {answers!r}. "
                "Omit unanswerable questions, and put a single answer in a list."
            )
        counts[row, 2] = 1
        if guess is not None:
            pairs = [_match(guess, answer, style) for answer in answers]
            counts[row, :2] = np.max(pairs, axis=0)
    totals = counts.sum(axis=0)
    exact_match, f1 = float(exact_match_of(totals)), float(answer_f1_of(totals))
    return AnswerScore(exact_match=exact_match, f1=f1, questions=len(gold), counts=counts)


def exact_match_of(totals: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return EM in percent from summed rows of `AnswerScore.counts`: (..., 3) -> (...)."""
    return percent(totals[..., 0], totals[..., 2])


def answer_f1_of(totals: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return F1 in percent from summed rows of `AnswerScore.counts`: (..., 3) -> (...)."""
    return percent(totals[..., 1], totals[..., 2])


def _match(predicted: str, gold: str, style: AnswerStyle) -> tuple[float, float]:
    """Return exact match and F1 of one pair."""
    if style == "squad":
        guess, truth = normalize_squad(predicted), normalize_squad(gold)
        units, gold_units = guess.split(), truth.split()
    else:
        guess, truth = normalize_korquad(predicted), normalize_korquad(gold)
        units, gold_units = list(guess.replace(" ", "")), list(truth.replace(" ", ""))
    same = (Counter(units) & Counter(gold_units)).total()
    # 2PR / (P + R) with P = same / units, R = same / gold units
    f1 = 2 * same / (len(units) + len(gold_units)) if same else 0.0
    return float(guess == truth), f1
