"""Shared by all readers of task data: files, columns, checks, the report of what was skipped.

Structural damage (a missing column, invalid JSON, an unknown tag) raises `FormatError` with file
and line at once. A well-formed but useless example (an answer missing from its context, an empty
document) is skipped and counted; too large a share of them is an error, and so is a file without
examples.
"""

import logging
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Literal, TypeVar

from elmokit.errors import ConfigError, FormatError, InputError
from elmokit.field_checks import check_ranges
from elmokit.files.atomic import StrPath
from elmokit.files.sources import existing_file
from elmokit.wording import Location

log = logging.getLogger(__name__)

SkipReason = Literal[
    "empty_sentence", "empty_token", "empty_document", "empty_text", "no_answer", "unanswerable",
    "answer_not_in_context", "target_not_in_text", "no_gold_label", "no_gold_key",
]  # fmt: skip
RepairReason = Literal["answer_moved", "answer_dropped", "several_targets", "chunk_begins_with_I"]

_SPLIT_NAMES = {"train": ("training",), "dev": ("val", "valid", "validation")}
"""Other names of a split."""
MAX_SKIPPED_SHARE = 0.05
"""Of the examples of a file; more is an error."""
_HARMLESS: tuple[SkipReason, ...] = ("no_gold_label", "unanswerable")
"""Intended by the authors of the data."""

Example = TypeVar("Example")


@dataclass
class ExampleReport:
    """What was read and skipped in a file; filled while it is read."""

    examples: int = 0
    """Examples returned."""
    skipped: Counter[SkipReason] = field(default_factory=Counter)
    """Examples left out."""
    repaired: Counter[RepairReason] = field(default_factory=Counter)
    """Examples returned after a change or without a part."""
    first_skips: dict[SkipReason, Location] = field(default_factory=dict)
    """Where each reason first occurred."""

    def skip(self, reason: SkipReason, location: Location) -> None:
        self.skipped[reason] += 1
        self.first_skips.setdefault(reason, location)

    def describe(self) -> str:
        """List the skipped and repaired examples by reason, most frequent first."""
        skipped = ", ".join(
            f"{reason}: {count} (first: {self.first_skips[reason]})"
            for reason, count in self.skipped.most_common()
        )
        repairs = (+self.repaired).most_common()
        repaired = ", ".join(f"{reason}: {count}" for reason, count in repairs)
        parts = (("skipped", skipped), ("repaired", repaired))
        return "; ".join(f"{name}: {text}" for name, text in parts if text)


def read_examples(
    path: StrPath, read: Callable[[Path, ExampleReport], Iterator[Example]]
) -> Iterator[Example]:
    """Check that a file exists, then read its examples one by one.

    ``read`` yields the examples and counts in the report what it skips, and whatever is more than
    one example in what it yields.
    """
    file, report = existing_file(path, what="task data"), ExampleReport()
    return _counted(file, read(file, report), report)


def _counted(path: Path, examples: Iterator[Example], report: ExampleReport) -> Iterator[Example]:
    for example in examples:
        report.examples += 1
        yield example
    num_faults = sum(n for reason, n in report.skipped.items() if reason not in _HARMLESS)
    num_all = report.examples + num_faults
    if num_faults > MAX_SKIPPED_SHARE * num_all:
        raise FormatError(
            f"{path}: {num_faults} of {num_all} examples are unusable; the allowed share is "
            f"{MAX_SKIPPED_SHARE:g} ({report.describe()})."
        )
    if report.examples == 0:
        reason = report.describe() or "it is empty, blank or only a header"
        raise FormatError(f"{path}: no example in the file ({reason}). Give a file with examples.")
    if report.describe():
        log.warning("%s: not all examples are as they should be: %s", path, report.describe())


@dataclass(frozen=True, kw_only=True)
class Columns:
    """The columns of a file with a word and its tag in each row, counted from 1."""

    word: int = 1
    tag: int | None = None
    """None: the last one."""

    def __post_init__(self) -> None:
        check_ranges(self, word=(1, 1_000), tag=(1, 1_000))
        if self.word == self.tag:
            raise ConfigError(f"`word` and `tag` must be different columns, got {self.word} twice")


def find_split(data: Path, split: str, suffixes: Sequence[str] = ()) -> Path:
    """Return the file of a data directory whose name says that it is this split.

    ``split``, or another name of it, must be a whole part of the name: ``train`` is in
    ``en-train.tsv``, not in ``constraints.tsv``. If there is none, folders in the directory are
    searched, but not hidden ones. Of several such files, the one with one of ``suffixes`` is taken.
    """
    if not data.is_dir():
        raise FileNotFoundError(f"There is no directory {data} with files train… and dev….")
    files: list[Path] = []
    for pattern, name in product(("[!.]*", "[!.]*/[!.]*"), (split, *_SPLIT_NAMES.get(split, ()))):
        part = re.compile(rf"(?<![a-z]){name}(?![a-z])")
        matches = (path for path in data.glob(pattern) if part.search(path.name.lower()))
        files = files or sorted(path for path in matches if path.is_file())
    if len(files) > 1 and suffixes:
        files = [path for path in files if set(path.suffixes) & set(suffixes)] or files
    if not files:
        raise FileNotFoundError(f"{data} has no file with {split!r} in its name.")
    if len(files) > 1:
        names = ", ".join(str(path.relative_to(data)) for path in files)
        raise InputError(f"{data} has several files with {split!r} in their names: {names}.")
    return files[0]
