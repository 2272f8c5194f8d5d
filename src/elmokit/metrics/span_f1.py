"""F1 of typed spans, equal to conlleval, and the tag schemes that encode them.

IOB1, IOB2 (BIO), BIOUL and IOBES (E is L, S is U) are read as conlleval does, also where a sequence
breaks its scheme: every token that is not O is in a span, and a span begins at B and U, after O, L
and U, and where the type changes (conlleval has no rule for U and for B after L).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from elmokit.errors import InputError
from elmokit.metrics.accuracy import (
    PrecisionRecall,
    check_same_length,
    check_same_tokens,
    percent,
)

TagScheme = Literal["iob1", "iob2", "bioul"]
"""``iob1`` uses B only where a span directly follows another of its type."""

Span = tuple[str, int, int]
"""Type, start, end (exclusive)."""

_PREFIXES = {"B": "B", "I": "I", "L": "L", "U": "U", "E": "L", "S": "U"}


@dataclass(frozen=True, kw_only=True)
class SpanScore:
    """Figures over all spans (micro average) and by type."""

    overall: PrecisionRecall
    by_type: Mapping[str, PrecisionRecall]
    """Every type in the predictions or the gold data, in alphabetical order."""
    counts: NDArray[np.float64] = field(repr=False, compare=False)
    """A row per example: correct, predicted, gold."""


def read_spans(tags: Sequence[str]) -> list[Span]:
    """Return the spans that tags of any scheme encode, from left to right.

    Raises:
        InputError: if a tag is neither O nor a prefix, a hyphen and a type.
    """
    spans: list[Span] = []
    before, old = "O", ""
    for at, tag in enumerate(tags):
        prefix, label = _split(tag, at)
        if prefix != "O":
            begins = prefix in ("B", "U") or before in "OLU" or label != old
            start = at if begins else spans.pop()[1]
            spans.append((label, start, at + 1))
        before, old = prefix, label
    return spans


def write_tags(spans: Iterable[Span], num_tokens: int, *, scheme: TagScheme) -> list[str]:
    """Return tags that encode the spans, O elsewhere.

    Raises:
        InputError: if spans are empty, overlap or exceed the sentence.
        ValueError: if there is no such scheme.
    """
    if scheme not in get_args(TagScheme):
        raise ValueError(f"`scheme` must be one of {get_args(TagScheme)}, got {scheme!r}.")
    tags = ["O"] * num_tokens
    end_before, type_before = 0, ""
    for label, start, end in sorted(spans, key=lambda span: span[1:]):
        if not end_before <= start < end <= num_tokens:
            raise InputError(
                f"Spans must not be empty, overlap or exceed the sentence of {num_tokens} tokens, "
                f"got {(label, start, end)}. Drop such spans before writing tags."
            )
        tags[start:end] = [f"I-{label}"] * (end - start)
        if scheme == "bioul":
            tags[end - 1] = f"L-{label}"
        touches = start > 0 and end_before == start and type_before == label
        if scheme != "iob1" or touches:
            single = scheme == "bioul" and end - start == 1
            tags[start] = f"{'U' if single else 'B'}-{label}"
        end_before, type_before = end, label
    return tags


def convert_tags(tags: Sequence[str], *, scheme: TagScheme) -> list[str]:
    """Rewrite tags of any scheme in ``scheme``; the spans stay, and the result is always legal.

    Raises:
        InputError: if a tag is neither O nor a prefix, a hyphen and a type.
    """
    return write_tags(read_spans(tags), len(tags), scheme=scheme)


def score_tags(
    predicted: Sequence[Sequence[str]],
    gold: Sequence[Sequence[str]],
    *,
    read: Callable[[Sequence[str]], Iterable[tuple[str, *tuple[Any, ...]]]] = read_spans,
) -> SpanScore:
    """Score tagged sentences: a span counts if its type and both boundaries are correct.

    ``read`` returns what is scored in a sentence, the type first.

    Raises:
        InputError: if predicted and gold differ in sentences or tokens, or a tag is unreadable.
    """
    check_same_length(predicted, gold)
    counts = np.zeros((len(gold), 3))
    by_type: dict[str, NDArray[np.float64]] = {}
    for row, (guess, truth) in enumerate(zip(predicted, gold, strict=True)):
        check_same_tokens(guess, truth, example=row)
        guesses, truths = set(read(guess)), set(read(truth))
        for column, found in enumerate((guesses & truths, guesses, truths)):
            counts[row, column] = len(found)
            for label, times in Counter(thing[0] for thing in found).items():
                by_type.setdefault(label, np.zeros(3))[column] += times
    return SpanScore(
        overall=PrecisionRecall.of(*counts.sum(axis=0)),
        by_type={label: PrecisionRecall.of(*by_type[label]) for label in sorted(by_type)},
        counts=counts,
    )


def f1_of(totals: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return F1 in percent from summed rows of `SpanScore.counts`: (..., 3) -> (...)."""
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
