"""Shared by all readers of task data: files, columns, JSON records, what was skipped.

Structural damage raises `FormatError` with file and line at once. A useless example is skipped and
counted; too large a share of them is an error, and so is a file without examples.
"""

import logging
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import chain, product
from pathlib import Path
from typing import Any, TypeVar

from elmokit.errors import FormatError, InputError, Location, shown
from elmokit.files.atomic import StrPath
from elmokit.files.json_files import begins_json_list, is_json
from elmokit.files.lines import csv_rows, numbered_lines
from elmokit.files.sources import existing_file, file_kind, plain_suffix
from elmokit.files.text_records import rows_by_column

log = logging.getLogger(__name__)

_SPLIT_NAMES = {"train": ("training",), "dev": ("val", "valid", "validation")}
MAX_SKIPPED_SHARE = 0.05  # of the examples of a file; more is an error
_HARMLESS = ("no_gold_label", "unanswerable", "no_word_at_the_answer")
"""Reasons that the authors of the data intended, or that are the tokenizer's."""

Example = TypeVar("Example")


@dataclass
class ExampleReport:
    """What was read, skipped and noted in a file, by reason; filled while it is read."""

    examples: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    noted: Counter[str] = field(default_factory=Counter)
    first_skips: dict[str, Location] = field(default_factory=dict)

    def skip(self, reason: str, location: Location) -> None:
        self.skipped[reason] += 1
        self.first_skips.setdefault(reason, location)

    def describe(self) -> str:
        """List the skipped and noted examples by reason, most frequent first."""
        skipped = [
            f"{reason}: {count} (first: {self.first_skips[reason]})"
            for reason, count in self.skipped.most_common()
        ]
        noted = [f"{reason}: {count}" for reason, count in (+self.noted).most_common()]
        parts = (("skipped", skipped), ("noted", noted))
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


@cache
def _typed(kind: Any) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def parse_json(text: str, kind: Any, location: Location) -> Any:
    """Return a JSON value of a type, such as a pydantic model."""
    # Unlike Python's own parser, that of pydantic refuses half a surrogate pair.
    with _naming(location):
        return _typed(kind).validate_json(text)


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """Named fields: a line of a file, or an object inside a JSON document."""

    fields: Mapping[str, Any]
    location: Location

    def as_model(self, kind: Any) -> Any:
        """Return the record as a pydantic model; `FormatError` names the field that is wrong."""
        with _naming(self.location):
            return _typed(kind).validate_python(self.fields)


def read_records(path: Path) -> Iterator[Record]:
    """Yield the records of a file, ignoring blank lines."""
    if plain_suffix(path) == ".csv":
        rows = csv_rows(path, (line for _, line in numbered_lines(path)))
        return _below_header(path, (row for row in rows if any(map(str.strip, row[1]))))
    lines = ((number, line) for number, line in numbered_lines(path) if line.strip())
    number, first = next(lines, (1, ""))
    lines = chain([(number, first)], lines)  # once through the file: it may be a pipe
    if begins_json_list(first):
        raise Location(path=path, line=number).error(
            "a list in JSON, but each line must be an object of its own (JSON lines). Convert it: "
            "jq -c '.[]' IN > OUT.jsonl."
        )
    if first and (file_kind(path) == "jsonl" or is_json(first, dict)):
        return (_from_json(line, Location(path=path, line=number)) for number, line in lines)
    return _below_header(path, ((number, line.split("\t")) for number, line in lines))


def join_lines(units: Sequence[Sequence[str]]) -> str:
    return "".join(f"{line}\n" for lines in units for line in lines)


@dataclass(frozen=True)
class DataFile:
    """A data file in units that a smaller data set keeps whole, in file order."""

    units: Sequence[Any]  # lines of each; of JSON documents anything that ``join`` understands
    join: Callable[[Sequence[Any]], str] = join_lines  # makes the text of a file from units
    size: Callable[[Any], int] = len  # examples in a unit


def records_of(
    path: Path, key: Callable[[Record], Hashable] = lambda record: record.location.line
) -> DataFile:
    """Divide JSON lines or a table into the records with the same key; samples keep the header."""
    lines, header, groups = dict(numbered_lines(path)), [], {}
    for record in read_records(path):
        number = record.location.line
        assert number is not None  # records of lines
        if not groups:
            header = [line for before, line in lines.items() if before < number and line.strip()]
        groups.setdefault(key(record), []).append(lines[number])
    return DataFile(list(groups.values()), lambda units: join_lines([header, *units]))


def _from_json(line: str, location: Location) -> Record:
    return Record(fields=parse_json(line, dict[str, Any], location), location=location)


def _below_header(path: Path, rows: Iterator[tuple[int, list[str]]]) -> Iterator[Record]:
    return (Record(fields=row, location=place) for place, row in rows_by_column(path, rows))


@contextmanager
def _naming(location: Location) -> Iterator[None]:
    """Say what pydantic refuses first, and where: ``data[0].paragraphs[2].qas``."""
    from pydantic import ValidationError

    try:
        yield
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        if fault["type"] == "json_invalid":
            raise location.error(f"{fault['msg']}. Is the file truncated?") from error
        place = ""
        for key in fault["loc"]:
            place += f"[{key}]" if isinstance(key, int) else f"{'.' if place else ''}{key}"
        subject = f"field {place!r}" if place else "record"
        raise location.error(f"{subject}: {fault['msg']}, got {shown(fault['input'])}.") from error
