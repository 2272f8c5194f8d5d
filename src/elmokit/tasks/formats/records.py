"""Records with named fields: JSON lines, and tables (TSV, CSV) whose first line names the columns.

The file name decides, apart from the suffix of a compression: ``.jsonl`` or ``.ndjson``, ``.csv``,
otherwise TSV, unless the first line is a JSON object. In TSV a quotation mark is an ordinary
character.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from elmokit.files.json_files import begins_json_list, is_json
from elmokit.files.lines import csv_rows, numbered_lines
from elmokit.files.location import Location, counted, shown
from elmokit.files.sources import file_kind, plain_suffix
from elmokit.tasks.formats.reading import ExampleReport


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """Named fields: a line of a file, or an object inside a JSON document."""

    fields: Mapping[str, Any]
    location: Location

    @classmethod
    def from_json(cls, text: str, location: Location) -> "Record":
        """Parse a JSON object.

        Raises:
            FormatError: with the line, if it is not one.
        """
        if not text.strip():
            raise location.error("empty, but a JSON object is expected.")
        try:
            fields = json.loads(text)
        except json.JSONDecodeError as error:
            line = location.line or error.lineno
            if error.msg == "Extra data" and location.line is None:
                raise Location(path=location.path, line=line).error(
                    "more than one JSON value (JSON Lines?), but the file must be one document."
                ) from error
            raise Location(path=location.path, line=line).error(
                f"not valid JSON: {error.msg} at column {error.colno}. Is the file truncated? Copy "
                "it again."
            ) from error
        except (ValueError, RecursionError) as error:
            raise location.error(f"JSON that cannot be read: {error}.") from error
        return cls._of(fields, location)

    @classmethod
    def _of(cls, value: Any, location: Location) -> "Record":
        if not isinstance(value, dict):
            raise location.error(f"expected a JSON object, got {shown(value)}.")
        return cls(fields=value, location=location)

    def value(self, name: str) -> Any:
        """Return a field of any type.

        Raises:
            FormatError: if the record lacks it; the methods below also if it has the wrong type.
        """
        if name not in self.fields:
            raise self.location.error(
                f"no field {name!r}; the record has: {', '.join(self.fields)}. Name the fields, or "
                f"give a file in the right format."
            )
        return self.fields[name]

    def text(self, name: str) -> str:
        """Return a string field without lone surrogates."""
        value = self.value(name)
        if not isinstance(value, str):
            raise self.location.error(f"field {name!r} must be a string, got {shown(value)}.")
        return check_unicode(value, self.location)

    def strings(self, name: str) -> tuple[str, ...]:
        value = self.value(name)
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise self.location.error(
                f"field {name!r} must be a list of strings, got {shown(value)}."
            )
        return tuple(check_unicode(one, self.location) for one in value)

    def records(self, name: str) -> list["Record"]:
        """Return a field that is a list of JSON objects."""
        values = self.value(name)
        if not isinstance(values, list):
            raise self.location.error(f"field {name!r} must be a list, got {shown(values)}.")
        before = f"{self.location.part}." if self.location.part else ""
        return [
            self._of(value, replace(self.location, part=f"{before}{name}[{index}]"))
            for index, value in enumerate(values)
        ]

    def integer(self, name: str) -> int:
        """Return a whole-number field; digits in a table."""
        value = self.value(name)
        if isinstance(value, str) and value.isdecimal() and value.isascii() and len(value) < 19:
            return int(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        raise self.location.error(f"field {name!r} must be a whole number, got {shown(value)}.")

    def truth(self, name: str) -> bool:
        """Return a boolean field, or ``true``, ``T``, ``false`` or ``F`` as text in any case."""
        value = self.value(name)
        word = value.strip().lower() if isinstance(value, str) else value
        if word in ("true", "t", "false", "f"):
            return word in ("true", "t")
        if isinstance(value, bool):
            return value
        raise self.location.error(f"field {name!r} must be true or false, got {shown(value)}.")

    def label(
        self, name: str, labels: Collection[str] | None, *, missing: Collection[str] = ("",)
    ) -> str | None:
        """Return a class label (a string or a whole number), None for one of ``missing``.

        Raises:
            FormatError: for a label that is not in ``labels``, if they are given.
        """
        value = self.value(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise self.location.error(
                f"field {name!r} must be a label (a string or a whole number), got {shown(value)}."
            )
        label = str(value).strip()
        if label in missing:
            return None
        if labels is not None and label not in labels:
            raise self.location.error(
                f"unknown label {shown(label)} in field {name!r}; allowed: {', '.join(labels)}."
            )
        return label


def read_records(path: Path) -> Iterator[Record]:
    """Yield the records of a file, ignoring blank lines.

    Raises:
        FormatError: for a line that is not a record, with file and line.
    """
    if plain_suffix(path) == ".csv":
        lines = (line for _, line in numbered_lines(path))
        rows = csv_rows(path, lines)
        return _with_header(path, (pair for pair in rows if any(map(str.strip, pair[1]))))
    lines = ((number, line) for number, line in numbered_lines(path) if line.strip())
    first = list(islice(lines, 1))
    lines = chain(first, lines)  # once through the file: it may be standard input or a pipe
    if file_kind(path) == "jsonl" or any(_is_json(path, *one) for one in first):
        return (Record.from_json(line, Location(path=path, line=number)) for number, line in lines)
    return _with_header(path, ((number, line.split("\t")) for number, line in lines))


def labeled_texts(
    path: Path,
    fields: tuple[Sequence[str], str],
    labels: Collection[str] | None,
    report: ExampleReport,
    *,
    missing: Collection[str] = ("",),
) -> Iterator[tuple[list[str], str, Location]]:
    """Yield the texts and the label of every record with a label and no blank text.

    ``fields`` are those of the texts and that of the label; ``labels`` None allows any;
    ``missing`` stand for no label.
    """
    for record in read_records(path):
        texts = [record.text(name) for name in fields[0]]
        label = record.label(fields[1], labels, missing=missing)
        if label is None:
            report.skip("no_gold_label", record.location)
        elif not all(text.strip() for text in texts):
            report.skip("empty_text", record.location)
        else:
            yield texts, label, record.location


def first_named(records: Iterator[Record], names: Sequence[str]) -> str:
    """Return the first of these names that the first record has, by default the first name."""
    record = next(records, None)
    fields = () if record is None else record.fields
    return next((name for name in names if name in fields), names[0])


def check_unicode(text: str, location: Location) -> str:
    """Return the text.

    Raises:
        FormatError: for a lone surrogate, which JSON can hold but UTF-8 cannot.
    """
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise location.error(
                f"the text has a lone surrogate (half a character) at character {error.start}. "
                f"Recreate the file from its source."
            ) from error
    return text


def _is_json(path: Path, number: int, line: str) -> bool:
    """Tell a JSON object from the header of a table."""
    if begins_json_list(line):
        raise Location(path=path, line=number).error(
            "a list in JSON, but each line must be an object of its own (JSON lines). Convert it: "
            "jq -c '.[]' IN > OUT.jsonl."
        )
    return is_json(line, dict)


def first_line(path: Path) -> tuple[int, str]:
    """Return the first line that is not blank, with its number; an empty one if there is none."""
    lines = ((number, line) for number, line in numbered_lines(path) if line.strip())
    return next(lines, (0, ""))


def _with_header(path: Path, rows: Iterator[tuple[int, list[str]]]) -> Iterator[Record]:
    header: list[str] | None = None
    for number, row in rows:
        location = Location(path=path, line=number)
        if header is None:
            header = [name.strip() for name in row]
            if len(set(header)) < len(header):
                raise location.error(
                    f"the header names a column twice: {', '.join(header)}. The first line must "
                    f"name each column."
                )
            continue
        if len(row) != len(header):
            raise location.error(
                f"{counted(len(row), 'column')}, but the header names {len(header)} "
                f"({', '.join(header)}). Every row needs all of them."
            )
        yield Record(fields=dict(zip(header, row, strict=True)), location=location)
