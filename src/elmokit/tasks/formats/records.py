"""Records with named fields: JSON lines, and tables (TSV, CSV) whose first line names the columns.

The file name decides, apart from the suffix of a compression: ``.jsonl`` or ``.ndjson``, ``.csv``,
otherwise TSV, unless the first line is a JSON object. In TSV a quotation mark is an ordinary
character. Types are checked by pydantic, whose JSON parser also refuses half a character.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from pydantic import StrictInt, StrictStr, TypeAdapter, ValidationError

from elmokit.files.json_files import begins_json_list, is_json
from elmokit.files.lines import csv_rows, numbered_lines
from elmokit.files.sources import file_kind, plain_suffix
from elmokit.wording import Location, counted, shown

_typed = cache(TypeAdapter)


def parse_json(text: str, kind: Any, location: Location) -> Any:
    """Return a JSON value of a type, such as a pydantic model."""
    try:
        return _typed(kind).validate_json(text)
    except ValidationError as error:
        raise location.error(_first_fault(error)) from error


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """Named fields: a line of a file, or an object inside a JSON document."""

    fields: Mapping[str, Any]
    location: Location

    @classmethod
    def from_json(cls, text: str, location: Location) -> "Record":
        """Parse a JSON object."""
        return cls(fields=parse_json(text, dict[str, Any], location), location=location)

    def as_model(self, kind: Any) -> Any:
        """Return the record as a pydantic model; `FormatError` if it is none."""
        try:
            return _typed(kind).validate_python(self.fields)
        except ValidationError as error:
            raise self.location.error(_first_fault(error)) from error

    def value(self, name: str, kind: Any) -> Any:
        """Return a field of a type; `FormatError` if the record lacks it or it has another type."""
        if name not in self.fields:
            raise self.location.error(
                f"no field {name!r}; the record has: {', '.join(self.fields)}. Name the fields, or "
                f"give a file in the right format."
            )
        try:
            return _typed(kind).validate_python(self.fields[name])
        except ValidationError as error:
            raise self.location.error(_first_fault(error, within=name)) from error

    def text(self, name: str) -> str:
        return self.value(name, str)

    def integer(self, name: str) -> int:
        """Return a whole-number field; digits in a table."""
        return self.value(name, int)

    def truth(self, name: str) -> bool:
        """Return a boolean field, or a word for one, such as ``True`` and ``f``."""
        return self.value(name, bool)

    def records(self, name: str) -> list["Record"]:
        """Return a field that is a list of JSON objects."""
        return [
            Record(fields=fields, location=replace(self.location, part=f"{name}[{index}]"))
            for index, fields in enumerate(self.value(name, list[dict[str, Any]]))
        ]

    def label(self, name: str, *, missing: Collection[str] = ("",)) -> str | None:
        """Return a class label (a string or a whole number), None for one of ``missing``."""
        value = self.value(name, StrictStr | StrictInt | None)
        label = "" if value is None else str(value).strip()
        return None if label in missing else label


def read_records(path: Path) -> Iterator[Record]:
    """Yield the records of a file, ignoring blank lines."""
    if plain_suffix(path) == ".csv":
        rows = csv_rows(path, (line for _, line in numbered_lines(path)))
        return _with_header(path, (row for row in rows if any(map(str.strip, row[1]))))
    lines = ((number, line) for number, line in numbered_lines(path) if line.strip())
    first = next(lines, (0, ""))
    lines = chain([first], lines)  # once through the file: it may be standard input or a pipe
    if not first[0]:
        return iter(())
    if file_kind(path) == "jsonl" or _is_json(path, *first):
        return (Record.from_json(line, Location(path=path, line=number)) for number, line in lines)
    return _with_header(path, ((number, line.split("\t")) for number, line in lines))


def first_named(records: Iterator[Record], names: Sequence[str]) -> str:
    """Return the first of these names that the first record has, by default the first name."""
    fields = next((record.fields for record in records), {})
    return next((name for name in names if name in fields), names[0])


def first_line(path: Path) -> str:
    """Return the first line that is not blank; an empty one if there is none."""
    return next((line for _, line in numbered_lines(path) if line.strip()), "")


def _is_json(path: Path, number: int, line: str) -> bool:
    """Tell a JSON object from the header of a table."""
    if begins_json_list(line):
        raise Location(path=path, line=number).error(
            "a list in JSON, but each line must be an object of its own (JSON lines). Convert it: "
            "jq -c '.[]' IN > OUT.jsonl."
        )
    return is_json(line, dict)


def _with_header(path: Path, rows: Iterator[tuple[int, list[str]]]) -> Iterator[Record]:
    header: list[str] = []
    for number, row in rows:
        location = Location(path=path, line=number)
        if not header:
            header = [name.strip() for name in row]
            if len(set(header)) < len(header):
                raise location.error(
                    f"the header names a column twice: {', '.join(header)}. The first line must "
                    f"name each column."
                )
        elif len(row) != len(header):
            raise location.error(
                f"{counted(len(row), 'column')}, but the header names {len(header)} "
                f"({', '.join(header)}). Every row needs all of them."
            )
        else:
            yield Record(fields=dict(zip(header, row, strict=True)), location=location)


def _first_fault(error: ValidationError, *, within: str = "") -> str:
    """Say what pydantic refuses first, and where: ``data[0].paragraphs[2].qas``."""
    fault = error.errors(include_url=False)[0]
    place = within
    for key in fault["loc"]:
        place += f"[{key}]" if isinstance(key, int) else f"{'.' if place else ''}{key}"
    if fault["type"] == "json_invalid":
        return f"{fault['msg']}. Is the file truncated? Copy it again."
    subject = f"field {place!r}" if place else "record"
    return f"{subject}: {fault['msg']}, got {shown(fault['input'])}."
