"""Scores of tasks: accuracy, F1 of typed spans, answers of SQuAD and KorQuAD, coreference.

IOB1, IOB2 (BIO), BIOUL and IOBES (E is L, S is U) are read as conlleval does, also where a sequence
breaks its scheme: every token that is not O is in a span, and a span begins at B and U, after O, L
and U, and where the type changes (conlleval has no rule for U and for B after L).
"""

import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from elmokit.errors import InputError, needs_extra

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


TagScheme = Literal["iob2", "bioul"]

Span = tuple[str, int, int]  # type, start, end (exclusive)
Argument = tuple[str, tuple[tuple[int, int], ...]]  # type and pieces ``(start, end)``, in order

_PREFIXES = {"B": "B", "I": "I", "L": "L", "U": "U", "E": "L", "S": "U"}


def read_spans(tags: Sequence[str]) -> list[Span]:
    """Return the spans that tags of any scheme encode, from left to right."""
    spans: list[Span] = []
    before, old = "O", ""
    for at, tag in enumerate(tags):
        prefix, label = _split(tag, at)
        if prefix != "O":
            begins = prefix in ("B", "U") or before in "OLU" or label != old
            # A token that goes on replaces the span before it by a longer one.
            start = at if begins else spans.pop()[1]
            spans.append((label, start, at + 1))
        before, old = prefix, label
    return spans


def read_arguments(tags: Sequence[str]) -> list[Argument]:
    """Return the arguments of one predicate without the predicate (V), by first piece.

    C-X continues the latest argument X, which then has several pieces; without one it is an
    ordinary X. R-X is a type of its own.
    """
    arguments: list[tuple[str, list[tuple[int, int]]]] = []
    latest: dict[str, list[tuple[int, int]]] = {}
    for label, start, end in read_spans(tags):
        role = label.removeprefix("C-")
        if role != label and role in latest:
            latest[role].append((start, end))
        else:
            latest[role] = [(start, end)]
            arguments.append((role, latest[role]))
    return [(role, tuple(pieces)) for role, pieces in arguments if role != "V"]


def write_tags(spans: Iterable[Span], num_tokens: int, *, scheme: TagScheme) -> list[str]:
    """Return tags that encode the spans, O elsewhere."""
    tags = ["O"] * num_tokens
    end_before = 0
    for label, start, end in sorted(spans, key=lambda span: span[1:]):
        if not end_before <= start < end <= num_tokens:
            raise InputError(
                f"Spans must not be empty, overlap or exceed the sentence of {num_tokens} tokens, "
                f"got {(label, start, end)}. Drop such spans before writing tags."
            )
        tags[start:end] = [f"I-{label}"] * (end - start)
        if scheme == "bioul":
            tags[end - 1] = f"L-{label}"
        single = scheme == "bioul" and end - start == 1
        tags[start] = f"{'U' if single else 'B'}-{label}"
        end_before = end
    return tags


def convert_tags(tags: Sequence[str], *, scheme: TagScheme) -> list[str]:
    """Rewrite tags of any scheme in ``scheme``; the spans stay, and the result is always legal."""
    return write_tags(read_spans(tags), len(tags), scheme=scheme)


def count_spans(
    predicted: Sequence[Sequence[str]],
    gold: Sequence[Sequence[str]],
    *,
    read: Callable[[Sequence[str]], Iterable[tuple[str, *tuple[Any, ...]]]] = read_spans,
) -> LabelCounts:
    """Count correct, predicted and gold spans of tagged sentences: (examples, 3).

    A span is correct if its type and both boundaries are. ``read`` returns what is scored in a
    sentence, the type first: `read_arguments` for semantic roles.
    """
    rows = np.zeros((len(gold), 3))
    totals = Counter(), Counter(), Counter()
    for row, (guess, truth) in enumerate(zip(predicted, gold, strict=True)):
        guesses, truths = set(read(guess)), set(read(truth))
        for column, spans in enumerate((guesses & truths, guesses, truths)):
            rows[row, column] = len(spans)
            totals[column].update(span[0] for span in spans)
    return LabelCounts(rows=rows, by_label=figures_by_label(*totals))


def f1_of(totals: Counts) -> Counts:
    """Return F1 in percent from summed rows of `count_spans`: (..., 3) -> (...)."""
    return percent(2 * totals[..., 0], totals[..., 1] + totals[..., 2])


def _split(tag: str, at: int) -> tuple[str, str]:
    """Return prefix (E as L, S as U) and type, split at the first hyphen; O has no type."""
    if tag == "O":
        return "O", ""
    prefix, _, label = tag.partition("-")
    if prefix not in _PREFIXES or not label:
        raise InputError(
            f"Tag {at} must be O, or B, I, L, U, E or S, a hyphen and a type, got {tag!r}. Correct "
            "the data, or choose the column with the tags."
        )
    return _PREFIXES[prefix], label


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


Mention = tuple[int, int]  # start, end (exclusive), in tokens of the document
Clusters = Sequence[Sequence[Mention]]
MEASURES: tuple[str, ...] = ("muc", "b3", "ceaf")
_Sets = Sequence[frozenset[Mention]]


def count_clusters(predicted: Sequence[Clusters], gold: Sequence[Clusters]) -> Counts:
    """Return numerator and denominator of precision and of recall for each of `MEASURES`: (N, 12).

    Mentions may nest and overlap; each is in one cluster of its document at most. A mention
    repeated within a cluster counts once.
    """
    rows = np.zeros((len(gold), 12))
    for row, (guess, truth) in enumerate(zip(predicted, gold, strict=True)):
        response, key = _without_singletons(guess), _without_singletons(truth)
        matched = _best_similarity(response, key)
        rows[row] = (
            *_muc_part(response, key), *_muc_part(key, response),
            *_b_cubed_part(response, key), *_b_cubed_part(key, response),
            matched, len(response), matched, len(key),
        )  # fmt: skip
    return rows


def f1s_of(totals: Counts) -> Counts:
    """Return the F1 of each measure in percent: (..., 12) -> (..., 3)."""
    precision = percent(totals[..., 0::4], totals[..., 1::4])
    recall = percent(totals[..., 2::4], totals[..., 3::4])
    return percent(2 * precision * recall, precision + recall) / 100


def average_f1_of(totals: Counts) -> Counts:
    """Return average F1 in percent from summed rows of `count_clusters`: (..., 12) -> (...)."""
    muc, b_cubed, ceaf = np.moveaxis(f1s_of(totals), -1, 0)
    return np.asarray((muc + b_cubed + ceaf) / 3)


def _without_singletons(clusters: Clusters) -> list[frozenset[Mention]]:
    return [mentions for mentions in map(frozenset, clusters) if len(mentions) > 1]


def _muc_part(clusters: _Sets, others: _Sets) -> tuple[float, float]:
    """Return the links of ``clusters`` that ``others`` keep, and all links."""
    kept = links = 0
    for cluster, homes in zip(clusters, _homes(clusters, others), strict=True):
        parts = len(set(homes)) + len(cluster) - len(homes)
        kept += len(cluster) - parts
        links += len(cluster) - 1
    return float(kept), float(links)


def _b_cubed_part(clusters: _Sets, others: _Sets) -> tuple[float, float]:
    """Return ``sum |C ∩ O|^2 / |C|`` over pairs, and the number of mentions."""
    share = 0.0
    for cluster, homes in zip(clusters, _homes(clusters, others), strict=True):
        share += sum(homes.count(other) ** 2 for other in set(homes)) / len(cluster)
    return share, float(sum(map(len, clusters)))


def _homes(clusters: _Sets, others: _Sets) -> list[list[int]]:
    """Return, of each cluster, the numbers of the other clusters that its mentions are in."""
    other_of = {mention: at for at, cluster in enumerate(others) for mention in cluster}
    return [[other_of[mention] for mention in cluster & other_of.keys()] for cluster in clusters]


def _best_similarity(response: _Sets, key: _Sets) -> float:
    """Return the largest sum of ``2 |K ∩ R| / (|K| + |R|)`` over one-to-one matchings."""
    with needs_extra("train", module="scipy"):
        from scipy.optimize import linear_sum_assignment
    if not response or not key:
        return 0.0
    phi = np.array([[2 * len(k & r) / (len(k) + len(r)) for r in response] for k in key])
    return float(phi[linear_sum_assignment(phi, maximize=True)].sum())
