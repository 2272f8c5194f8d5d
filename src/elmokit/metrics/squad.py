"""Exact match and F1 of answers: SQuAD 1.1 (words) and KorQuAD 1.0 (characters)."""

import re
import string
from collections import Counter
from collections.abc import Sequence
from typing import Literal

import numpy as np

from elmokit.metrics.accuracy import Counts, percent

AnswerStyle = Literal["squad", "korquad"]

_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_KOREAN_MARKS = str.maketrans(dict.fromkeys("'\"‘’《》<>〈〉()", " "))


def normalize_squad(answer: str) -> str:
    """Lower-case, delete ASCII punctuation and articles, collapse white space."""
    return " ".join(_ARTICLES.sub(" ", answer.lower().translate(_NO_PUNCTUATION)).split())


def normalize_korquad(answer: str) -> str:
    """Replace quotes and brackets by spaces, then as `normalize_squad`, but keep articles."""
    return " ".join(answer.translate(_KOREAN_MARKS).lower().translate(_NO_PUNCTUATION).split())


def count_answers(
    predicted: Sequence[str], gold: Sequence[tuple[Sequence[str], AnswerStyle]]
) -> Counts:
    """Return exact match (0 or 1), F1 (0 to 1) and 1 of each question, for its best gold answer.

    As in the official scripts, two answers that are empty after normalization match with F1 0.
    """
    rows = np.ones((len(gold), 3))
    for row, (guess, (answers, style)) in enumerate(zip(predicted, gold, strict=True)):
        rows[row, :2] = np.max([_match(guess, answer, style) for answer in answers], axis=0)
    return rows


def exact_match_of(totals: Counts) -> Counts:
    """Return EM in percent from summed rows of `count_answers`: (..., 3) -> (...)."""
    return percent(totals[..., 0], totals[..., 2])


def answer_f1_of(totals: Counts) -> Counts:
    """Return F1 in percent from summed rows of `count_answers`: (..., 3) -> (...)."""
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
