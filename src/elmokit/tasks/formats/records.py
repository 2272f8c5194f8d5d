"""Records with named fields: JSON lines, and tables (TSV, CSV) whose first line names the columns.

The file name decides: ``.jsonl`` or ``.ndjson``, ``.csv``, otherwise TSV, unless the first line is
a JSON object. In TSV a quotation mark is an ordinary character.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from elmokit.files.json_files import begins_json_list, is_json
from elmokit.files.lines import csv_rows, numbered_lines
from elmokit.files.sources import file_kind, plain_suffix
from elmokit.wording import Location, counted, shown


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

    def value(self, name: str, kind: Any) -> Any:
        """Return a field of a type; `FormatError` if the record lacks it or it has another type."""
        if name not in self.fields:
            raise self.location.error(
                f"no field {name!r}; the record has: {', '.join(self.fields)}."
            )
        with _naming(self.location, name):
            return _typed(kind).validate_python(self.fields[name])

    def text(self, name: str) -> str:
        return self.value(name, str)


def read_records(path: Path) -> Iterator[Record]:
    """Yield the records of a file, ignoring blank lines."""
    if plain_suffix(path) == ".csv":
        rows = csv_rows(path, (line for _, line in numbered_lines(path)))
        return _with_header(path, (row for row in rows if any(map(str.strip, row[1]))))
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
    return _with_header(path, ((number, line.split("\t")) for number, line in lines))


def first_named(records: Iterator[Record], names: Sequence[str]) -> str:
    """Return the first of these names that the first record has, by default the first name."""
    fields = next((record.fields for record in records), {})
    return next((name for name in names if name in fields), names[0])


def _from_json(line: str, location: Location) -> Record:
    return Record(fields=parse_json(line, dict[str, Any], location), location=location)


def _with_header(path: Path, rows: Iterator[tuple[int, list[str]]]) -> Iterator[Record]:
    number, header = next(rows, (1, []))
    header = [name.strip() for name in header]
    if len(set(header)) < len(header):
        raise Location(path=path, line=number).error(
            f"the header names a column twice: {', '.join(header)}."
        )
    for number, row in rows:
        location = Location(path=path, line=number)
        if len(row) != len(header):
            raise location.error(
                f"{counted(len(row), 'column')}, but the header names {len(header)} "
                f"({', '.join(header)}). Every row needs all of them."
            )
        yield Record(fields=dict(zip(header, row, strict=True)), location=location)


@contextmanager
def _naming(location: Location, place: str = "") -> Iterator[None]:
    """Say what pydantic refuses first, and where: ``data[0].paragraphs[2].qas``."""
    from pydantic import ValidationError

    try:
        yield
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        if fault["type"] == "json_invalid":
            raise location.error(f"{fault['msg']}. Is the file truncated?") from error
        for key in fault["loc"]:
            place += f"[{key}]" if isinstance(key, int) else f"{'.' if place else ''}{key}"
        subject = f"field {place!r}" if place else "record"
        raise location.error(f"{subject}: {fault['msg']}, got {shown(fault['input'])}.") from error
