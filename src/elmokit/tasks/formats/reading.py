"""What all readers of task data share: the checks, and the report of what was skipped.

One policy for bad input. Damage of the structure (a column too few, no JSON, an unknown tag) raises
`FormatError` with file and line at once: what follows it cannot be trusted. An example that is well
formed but of no use (an answer that its context lacks, an empty document) is skipped and counted in
an `ExampleReport`; past a share of all examples that is an error too. A file without any example is
always an error.
"""

import logging
import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeVar

from elmokit.errors import FormatError, InputError
from elmokit.files.atomic import StrPath
from elmokit.files.location import Location
from elmokit.files.sources import STANDARD_INPUT

_log = logging.getLogger(__name__)

SkipReason = Literal[
    "empty_sentence",
    "empty_token",
    "empty_document",
    "empty_text",
    "no_answer",
    "answer_not_in_context",
    "target_not_in_text",
    "no_gold_label",
    "no_gold_key",
]
RepairReason = Literal["answer_moved", "answer_dropped", "several_targets", "tag_moved"]

_HARMLESS: tuple[SkipReason, ...] = ("no_gold_label",)  # the makers of the data meant it

Example = TypeVar("Example")


@dataclass
class ExampleReport:
    """What was read and what was skipped; filled while reading, over one or several files."""

    max_skipped_share: float = 0.05
    """Of the examples of a file, from 0 (skip nothing) to 1; more is an error."""
    examples: int = 0
    """Examples handed out (of word senses: annotated words)."""
    skipped: Counter[SkipReason] = field(default_factory=Counter)
    """Examples left out, by reason."""
    repaired: Counter[RepairReason] = field(default_factory=Counter)
    """Examples handed out after a change, or with a part left out, by reason."""
    first_skips: dict[SkipReason, Location] = field(default_factory=dict)
    """Where each reason occurred first."""

    def __post_init__(self) -> None:
        """Check the share."""
        if not 0 <= self.max_skipped_share <= 1:
            raise InputError(
                "`max_skipped_share` must lie between 0 (skip nothing) and 1 (skip anything), got "
                f"{self.max_skipped_share}."
            )

    @property
    def num_faults(self) -> int:
        """Examples skipped for a fault; those without a gold label by intent are none."""
        return sum(n for reason, n in self.skipped.items() if reason not in _HARMLESS)

    def skip(self, reason: SkipReason, location: Location) -> None:
        """Count an example that is left out."""
        self.skipped[reason] += 1
        self.first_skips.setdefault(reason, location)

    def describe(self) -> str:
        """Return the skipped and repaired examples in words, the most frequent first."""
        skipped = (
            f"{reason}: {count} (first: {self.first_skips[reason]})"
            if reason in self.first_skips
            else f"{reason}: {count}"
            for reason, count in self.skipped.most_common()
        )
        repaired = (f"{reason}: {count}" for reason, count in self.repaired.most_common())
        parts = [("skipped", ", ".join(skipped)), ("repaired", ", ".join(repaired))]
        return "; ".join(f"{name}: {text}" for name, text in parts if text) or "nothing skipped"


def existing_file(path: StrPath) -> Path:
    """Return the path of one file of task data.

    Raises:
        FileNotFoundError: if there is no such file.
    """
    found = Path(path)
    if found != STANDARD_INPUT and (not found.exists() or found.is_dir()):
        raise FileNotFoundError(
            f"no task data at {os.fspath(path)!r}. Give one file, plain or compressed (.gz, .xz)."
        )
    return found


def read_examples(
    path: StrPath,
    read: Callable[[Path, ExampleReport], Iterator[Example]],
    report: ExampleReport | None,
    *,
    size: Callable[[Example], int] = lambda _: 1,
) -> Iterator[Example]:
    """Check that a file exists, then read its examples one by one.

    Args:
        path: One file, plain or compressed.
        read: Yields the examples; counts in the report what it skips.
        report: May have counts of earlier files too; None: one of its own.
        size: How many examples one item stands for.

    Raises:
        FileNotFoundError: at once, if there is no such file.
        FormatError: at the end, if too much was skipped or nothing is left.
    """
    found = existing_file(path)
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
            f"{path}: {num_faults} of {num_read + num_faults} examples cannot be used, allowed is "
            f"a share of {report.max_skipped_share:g} ({report.describe()}). Correct the data; "
            f"from Python, `ExampleReport(max_skipped_share=...)` allows more."
        )
    if num_read == 0:
        reason = report.describe() if num_skipped else "it is empty or blank, or has a header alone"
        raise FormatError(f"{path}: no example in the file ({reason}). Give a file with examples.")
    if num_skipped or num_repaired:
        _log.warning("%s: not all examples are as they should be: %s", path, report.describe())
