"""Ambiguous pronouns with two candidate names each (GAP), from a table with character offsets."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from elmokit.files.location import Location
from elmokit.tasks.formats.reading import (
    DEFAULT_MAX_SKIPPED_SHARE,
    ExampleReport,
    check_arguments,
    checked,
)
from elmokit.tasks.formats.records import Record, read_records


@dataclass(frozen=True, kw_only=True, slots=True)
class PronounExample:
    """A text, a pronoun in it, and two names of which at most one is meant.

    Spans are ``(start, end)`` in characters of the text, end-exclusive.
    """

    name: str
    text: str
    pronoun: tuple[int, int]
    candidates: tuple[tuple[int, int], tuple[int, int]]
    answer: int | None
    """Index of the candidate that the pronoun means; none if neither."""
    location: Location


def read_gap(
    path: str | os.PathLike[str],
    *,
    report: ExampleReport | None = None,
    max_skipped_share: float = DEFAULT_MAX_SKIPPED_SHARE,
) -> Iterator[PronounExample]:
    """Yield the examples of a table with the header of GAP.

    Args:
        path: The file, plain or compressed.
        report: Counts what is read and skipped; an example is skipped where the pronoun or a name
            does not stand at its offset.
        max_skipped_share: Of the examples; more is an error.

    Raises:
        FileNotFoundError: at once, if there is no such file.
        FormatError: while reading, for missing columns, offsets that are no numbers, answers that
            are neither TRUE nor FALSE or both TRUE, and a file without examples.
    """
    found = check_arguments(path, max_skipped_share)
    report = ExampleReport() if report is None else report
    return checked(found, _read(found, report), report, max_skipped_share=max_skipped_share)


def _read(path: Path, report: ExampleReport) -> Iterator[PronounExample]:
    for record in read_records(path):
        text = record.text("Text")
        pronoun, first, second = (_span(record, text, name) for name in ("Pronoun", "A", "B"))
        is_first, is_second = record.truth("A-coref"), record.truth("B-coref")
        if is_first and is_second:
            raise record.location.error("A-coref and B-coref are both TRUE; at most one may be.")
        if pronoun is None or first is None or second is None:
            report.skip("target_not_in_text", record.location)
            continue
        yield PronounExample(
            name=record.text("ID"),
            text=text,
            pronoun=pronoun,
            candidates=(first, second),
            answer=0 if is_first else 1 if is_second else None,
            location=record.location,
        )


def _span(record: Record, text: str, name: str) -> tuple[int, int] | None:
    """Return where the words of a column stand, none if that is not in the text."""
    words, start = record.text(name), record.integer(f"{name}-offset")
    end = start + len(words)
    return (start, end) if words and text[start:end] == words else None
