"""F1 of typed spans, equal to conlleval, and of semantic roles, equal to srl-eval of CoNLL-2005.

IOB1, IOB2 (BIO), BIOUL and IOBES (E is L, S is U) are read as conlleval does, also where a sequence
breaks its scheme: every token that is not O is in a span, and a span begins at B and U, after O, L
and U, and where the type changes (conlleval has no rule for U and for B after L).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import numpy as np

from elmokit.errors import InputError
from elmokit.metrics.accuracy import Counts, LabelCounts, figures_by_label, percent

TagScheme = Literal["iob1", "iob2", "bioul"]
"""``iob1`` uses B only where a span directly follows another of its type."""

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
