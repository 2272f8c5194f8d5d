"""Shared by all readers of task data: files, columns, the report of what was skipped.

Structural damage raises `FormatError` with file and line at once. A useless example is skipped and
counted; too large a share of them is an error, and so is a file without examples.
"""

import logging
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import TypeVar

from elmokit.errors import FormatError, InputError
from elmokit.field_checks import check_ranges
from elmokit.files.atomic import StrPath
from elmokit.files.sources import existing_file
from elmokit.wording import Location

log = logging.getLogger(__name__)

_SPLIT_NAMES = {"train": ("training",), "dev": ("val", "valid", "validation")}
MAX_SKIPPED_SHARE = 0.05  # of the examples of a file; more is an error
_HARMLESS = ("no_gold_label", "unanswerable")  # reasons that the authors of the data intended

Example = TypeVar("Example")


@dataclass
class ExampleReport:
    """What was read, skipped and repaired in a file, by reason; filled while it is read."""

    examples: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    repaired: Counter[str] = field(default_factory=Counter)
    first_skips: dict[str, Location] = field(default_factory=dict)

    def skip(self, reason: str, location: Location) -> None:
        self.skipped[reason] += 1
        self.first_skips.setdefault(reason, location)

    def describe(self) -> str:
        """List the skipped and repaired examples by reason, most frequent first."""
        skipped = [
            f"{reason}: {count} (first: {self.first_skips[reason]})"
            for reason, count in self.skipped.most_common()
        ]
        repaired = [f"{reason}: {count}" for reason, count in (+self.repaired).most_common()]
        parts = (("skipped", skipped), ("repaired", repaired))
        return "; ".join(f"{name}: {', '.join(items)}" for name, items in parts if items)


def read_examples(
    path: StrPath, read: Callable[[Path, ExampleReport], Iterator[Example]]
) -> Iterator[Example]:
    """Yield the examples of ``read``, which counts in the report what it skips and repairs."""
    file, report = existing_file(path, what="task data"), ExampleReport()
    for example in read(file, report):
        report.examples += 1
        yield example
    num_faults = sum(n for reason, n in report.skipped.items() if reason not in _HARMLESS)
    num_all, described = report.examples + num_faults, report.describe()
    if num_faults > MAX_SKIPPED_SHARE * num_all:
        raise FormatError(
            f"{file}: {num_faults} of {num_all} examples are unusable; the allowed share is "
            f"{MAX_SKIPPED_SHARE:g} ({described})."
        )
    if report.examples == 0:
        reason = described or "it is empty, blank or only a header"
        raise FormatError(f"{file}: no example in the file ({reason}). Give a file with examples.")
    if described:
        log.warning("%s: not all examples are as they should be: %s", file, described)


@dataclass(frozen=True, kw_only=True)
class Columns:
    """The columns of a file with a word and its tag in each row, counted from 1."""

    word: int = 1
    tag: int | None = None  # none: the last one

    def __post_init__(self) -> None:
        check_ranges(self, word=(1, 1_000), tag=(1, 1_000))


def find_split(data: Path, split: str, suffixes: Sequence[str] = ()) -> Path:
    """Return the file of a directory that has the split, or another name of it, in its name.

    It must be a whole part of the name: ``train`` is in ``en-train.tsv``, not in
    ``constraints.tsv``. If there is none, folders in the directory are searched.
    """
    files: list[Path] = []
    # "[!.]": no hidden files and folders, such as the notes that macOS leaves in archives
    for pattern, name in product(("[!.]*", "[!.]*/[!.]*"), (split, *_SPLIT_NAMES.get(split, ()))):
        part = re.compile(rf"(?<![a-z]){name}(?![a-z])")
        matches = (path for path in data.glob(pattern) if part.search(path.name.lower()))
        files = files or sorted(path for path in matches if path.is_file())
    if len(files) > 1 and suffixes:
        files = [path for path in files if set(path.suffixes) & set(suffixes)] or files
    if not files:
        raise FileNotFoundError(f"{data} is no directory with a file with {split!r} in its name.")
    if len(files) > 1:
        names = ", ".join(str(path.relative_to(data)) for path in files)
        raise InputError(f"{data} has several files with {split!r} in their names: {names}.")
    return files[0]
