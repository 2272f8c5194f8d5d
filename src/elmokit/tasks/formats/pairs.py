"""Labeled pairs of sentences: entailment (SNLI, MultiNLI, KLUE) and similar tasks."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from elmokit.files.atomic import StrPath
from elmokit.files.location import Location
from elmokit.tasks.formats.reading import ExampleReport, read_examples
from elmokit.tasks.formats.records import labeled_texts

NLI_LABELS = ("entailment", "neutral", "contradiction")
NO_AGREEMENT = ("", "-")
"""In place of a label: the annotators did not agree on one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TextPair:
    """Two texts, neither of them blank, and their relation."""

    first: str
    """The premise."""
    second: str
    """The hypothesis."""
    label: str
    location: Location


def read_pairs(
    path: StrPath,
    *,
    first: str = "premise",
    second: str = "hypothesis",
    label: str = "label",
    labels: Collection[str] | None = NLI_LABELS,
    report: ExampleReport | None = None,
) -> Iterator[TextPair]:
    """Yield the pairs of a JSON-lines, TSV or CSV file (by name), plain or compressed.

    SNLI and MultiNLI name the fields ``sentence1``, ``sentence2`` and ``gold_label``. A pair with a
    blank text is skipped as a fault; one whose label is empty or ``-`` (no agreement) is skipped
    and counted, but not as a fault. ``labels`` None allows any label.

    Raises:
        FileNotFoundError: at once, if there is no such file.
        FormatError: while reading, for a missing field, an unknown label, a line that is not a
            record, or a file without pairs.
    """
    fields = ((first, second), label)
    return read_examples(
        path,
        lambda path, report: (
            TextPair(first=first, second=second, label=label, location=location)
            for (first, second), label, location in labeled_texts(
                path, fields, labels, report, missing=NO_AGREEMENT
            )
        ),
        report,
    )
