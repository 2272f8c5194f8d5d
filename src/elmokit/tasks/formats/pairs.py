"""Pairs of sentences with a label: entailment (SNLI, MultiNLI, KLUE) and what looks like it."""

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from elmokit.files.location import Location
from elmokit.tasks.formats.reading import (
    DEFAULT_MAX_SKIPPED_SHARE,
    ExampleReport,
    check_arguments,
    checked,
)
from elmokit.tasks.formats.records import read_records

NLI_LABELS = ("entailment", "neutral", "contradiction")
"""Labels of natural language inference."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TextPair:
    """Two texts, neither of them blank, and what holds between them."""

    first: str
    """The premise."""
    second: str
    """The hypothesis."""
    label: str
    location: Location


def read_pairs(
    path: str | os.PathLike[str],
    *,
    first: str = "premise",
    second: str = "hypothesis",
    label: str = "label",
    labels: Collection[str] | None = NLI_LABELS,
    report: ExampleReport | None = None,
    max_skipped_share: float = DEFAULT_MAX_SKIPPED_SHARE,
) -> Iterator[TextPair]:
    """Yield the pairs of a file with named fields.

    Args:
        path: JSON lines, TSV or CSV (by name), plain or compressed.
        first: Field of the first text; ``sentence1`` in the files of SNLI and MultiNLI.
        second: Field of the second text; ``sentence2`` there.
        label: Field of the label; ``gold_label`` there. Where it is empty or ``-``, the annotators
            did not agree: the pair is skipped and counted, but that is no fault.
        labels: That may occur; any if none.
        report: Counts what is read and skipped; a pair with a blank text is skipped.
        max_skipped_share: Of the pairs; more is an error.

    Raises:
        FileNotFoundError: at once, if there is no such file.
        FormatError: while reading, for a missing field, an unknown label, a line that is no record,
            and a file without pairs.
    """
    found = check_arguments(path, max_skipped_share)
    report = ExampleReport() if report is None else report
    pairs = _read(found, (first, second, label), labels, report)
    return checked(found, pairs, report, max_skipped_share=max_skipped_share)


def _read(
    path: Path,
    names: tuple[str, str, str],
    labels: Collection[str] | None,
    report: ExampleReport,
) -> Iterator[TextPair]:
    for record in read_records(path):
        first, second = record.text(names[0]), record.text(names[1])
        label = record.label(names[2], labels)
        if label is None:
            report.skip("no_gold_label", record.location)
        elif not first.strip() or not second.strip():
            report.skip("empty_text", record.location)
        else:
            yield TextPair(first=first, second=second, label=label, location=record.location)
