"""Shared by all readers of task data: the checks, and the report of what was skipped.

Structural damage (a missing column, invalid JSON, an unknown tag) raises `FormatError` with file
and line at once. A well-formed but useless example (an answer missing from its context, an empty
document) is skipped and counted; too large a share of them is an error, and so is a file without
examples.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeVar

from elmokit.errors import FormatError, InputError
from elmokit.files.atomic import StrPath
from elmokit.files.location import Location
from elmokit.files.sources import existing_file

_log = logging.getLogger(__name__)

SkipReason = Literal[
    "empty_sentence",
    "empty_token",
    "empty_document",
    "empty_text",
    "no_answer",
    "unanswerable",
    "answer_not_in_context",
    "target_not_in_text",
    "no_gold_label",
    "no_gold_key",
]
RepairReason = Literal["answer_moved", "answer_dropped", "several_targets", "tag_moved"]

_HARMLESS: tuple[SkipReason, ...] = ("no_gold_label", "unanswerable")
"""Intended by the authors of the data."""

Example = TypeVar("Example")


@dataclass
class ExampleReport:
    """What was read and skipped; filled while reading one or several files."""

    max_skipped_share: float = 0.05
    """Of the examples of a file, 0 to 1; more is an error."""
    examples: int = 0
    """Examples returned (for word senses: annotated words)."""
    skipped: Counter[SkipReason] = field(default_factory=Counter)
    """Examples left out."""
    repaired: Counter[RepairReason] = field(default_factory=Counter)
    """Examples returned after a change or without a part."""
    first_skips: dict[SkipReason, Location] = field(default_factory=dict)
    """Where each reason first occurred."""

    def __post_init__(self) -> None:
        if not 0 <= self.max_skipped_share <= 1:
            raise InputError(
                "`max_skipped_share` must be between 0 (skip nothing) and 1 (skip anything), got "
                f"{self.max_skipped_share}."
            )

    @property
    def num_faults(self) -> int:
        """Examples skipped for a fault, as opposed to an intended lack of a label."""
        return sum(n for reason, n in self.skipped.items() if reason not in _HARMLESS)

    def skip(self, reason: SkipReason, location: Location) -> None:
        self.skipped[reason] += 1
        self.first_skips.setdefault(reason, location)

    def describe(self) -> str:
        """List the skipped and repaired examples by reason, most frequent first."""
        skipped = (
            f"{reason}: {count} (first: {self.first_skips[reason]})"
            if reason in self.first_skips
            else f"{reason}: {count}"
            for reason, count in self.skipped.most_common()
        )
        repaired = (f"{reason}: {count}" for reason, count in self.repaired.most_common())
        parts = [("skipped", ", ".join(skipped)), ("repaired", ", ".join(repaired))]
        return "; ".join(f"{name}: {text}" for name, text in parts if text) or "nothing skipped"


def read_examples(
    path: StrPath,
    read: Callable[[Path, ExampleReport], Iterator[Example]],
    report: ExampleReport | None,
    *,
    size: Callable[[Example], int] = lambda _: 1,
) -> Iterator[Example]:
    """Check that a file exists, then read its examples one by one.

    ``read`` yields the examples and counts in the report what it skips; the report may already hold
    counts of other files. An item counts as ``size(item)`` examples.

    Raises:
        FileNotFoundError: at once, if there is no such file.
        FormatError: at the end, if too much was skipped or nothing is left.
    """
    found = existing_file(path, what="task data")
    report = ExampleReport() if report is None else report
    return _counted(found, read(found, report), report, size)


def _counted(
    path: Path, examples: Iterator[Example], report: ExampleReport, size: Callable[[Example], int]
) -> Iterator[Example]:
    num_read_before, num_faults_before = report.examples, report.num_faults
    num_skipped_before, num_repaired_before = report.skipped.total(), report.repaired.total()
    for example in examples:
        report.examples += size(example)
        yield example
    num_read, num_faults = report.examples - num_read_before, report.num_faults - num_faults_before
    num_skipped = report.skipped.total() - num_skipped_before
    num_repaired = report.repaired.total() - num_repaired_before
    if num_faults > report.max_skipped_share * (num_read + num_faults):
        raise FormatError(
            f"{path}: {num_faults} of {num_read + num_faults} examples are unusable; the allowed "
            f"share is {report.max_skipped_share:g} ({report.describe()}). Correct the data, or "
            "leave these examples out."
        )
    if num_read == 0:
        reason = report.describe() if num_skipped else "it is empty, blank or only a header"
        raise FormatError(f"{path}: no example in the file ({reason}). Give a file with examples.")
    if num_skipped or num_repaired:
        _log.warning("%s: some examples are unusable: %s", path, report.describe())
