"""Pairs of sentences with a label: entailment (SNLI, MultiNLI, KLUE) and what looks like it."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from elmokit.files.atomic import StrPath
from elmokit.files.location import Location
from elmokit.tasks.formats.reading import ExampleReport, read_examples
from elmokit.tasks.formats.records import labeled_texts

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
    path: StrPath,
    *,
    first: str = "premise",
    second: str = "hypothesis",
    label: str = "label",
    labels: Collection[str] | None = NLI_LABELS,
    report: ExampleReport | None = None,
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

    Raises:
        FileNotFoundError: at once, if there is no such file.
        FormatError: while reading, for a missing field, an unknown label, a line that is no record,
            and a file without pairs.
    """
    fields = ((first, second), label)
    return read_examples(
        path,
        lambda path, report: (
            TextPair(first=first, second=second, label=label, location=location)
            for (first, second), label, location in labeled_texts(path, fields, labels, report)
        ),
        report,
    )
