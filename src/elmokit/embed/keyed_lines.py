"""Sequences with ids: FASTA, and tables and JSON lines with a field of ids."""

import json
from collections.abc import Iterator
from typing import Any

from elmokit.embed.formats.block import check_key
from elmokit.errors import InputError
from elmokit.files.lines import csv_rows
from elmokit.files.remote import AnyFile
from elmokit.files.sources import COMPRESSIONS
from elmokit.wording import Location, shown

FASTA_SUFFIXES = (".fasta", ".fas", ".fa", ".faa", ".fna", ".ffn")
TABLE_SUFFIXES = (".jsonl", ".ndjson", ".tsv", ".csv")
DEFAULT_TEXT_FIELD = "text"

Lines = Iterator[tuple[Location, str]]
KeyedTexts = Iterator[tuple[Location, str, str]]
"""(where the record begins, its key, its text)."""


def plain_suffix(path: AnyFile) -> str:
    """Return the suffix of a file without that of its compression, in lower case."""
    name = path.name.lower()
    for suffix in COMPRESSIONS:
        name = name.removesuffix(suffix)
    return name[name.rfind(".") :] if "." in name else ""


def keyed_texts(
    path: AnyFile, lines: Lines, *, id_field: str | None, text_field: str | None
) -> KeyedTexts:
    """Yield the records of a FASTA file or, with an ``id_field``, of a table or JSON lines.

    Raises:
        FormatError: while reading, for a record without id or text, with file and line.
        InputError: for a file of another kind.
    """
    suffix = plain_suffix(path)
    if suffix in FASTA_SUFFIXES and id_field is None:
        return _fasta(lines)
    if suffix not in TABLE_SUFFIXES or id_field is None:
        raise InputError(
            f"{path}: ids are read from FASTA ({', '.join(FASTA_SUFFIXES)}), or with --id-field "
            f"from {', '.join(TABLE_SUFFIXES)}; all files of a job must have them."
        )
    records = _json_records if suffix in (".jsonl", ".ndjson") else _table_records
    return _fields(records(path, lines), id_field, text_field or DEFAULT_TEXT_FIELD)


def _fasta(lines: Lines) -> KeyedTexts:
    """Yield a sequence with blanks between its letters, which makes each letter a token."""
    start, key = None, ""
    letters: list[str] = []
    for location, line in lines:
        if line.startswith(">"):
            if start is not None:
                yield start, key, " ".join("".join(letters))
            header = line[1:].split(None, 1)
            start, key, letters = location, header[0] if header else "", []
        elif start is not None:
            letters.append("".join(line.split()))
        elif line.strip() and not line.startswith(";"):  # old files begin with such comments
            raise location.error("expected a FASTA header, which begins with `>`.")
    if start is not None:
        yield start, key, " ".join("".join(letters))


def _json_records(path: AnyFile, lines: Lines) -> Iterator[tuple[Location, dict[str, Any]]]:
    for location, line in lines:
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise location.error(f"invalid JSON: {error}.") from error
        if not isinstance(record, dict):
            raise location.error(f"expected a JSON object, got {shown(record)}.")
        yield location, record


def _table_records(path: AnyFile, lines: Lines) -> Iterator[tuple[Location, dict[str, Any]]]:
    """Yield rows by the names of the first one; columns of .tsv are never quoted."""
    if plain_suffix(path) == ".csv":
        rows = csv_rows(path, (line for _, line in lines))
    else:
        rows = ((place.line or 0, line.split("\t")) for place, line in lines if line.strip())
    names: list[str] | None = None
    for number, row in rows:
        if names is None:
            names = row
        elif row:
            yield Location(path=path, line=number), dict(zip(names, row, strict=False))


def _fields(
    records: Iterator[tuple[Location, dict[str, Any]]], id_field: str, text_field: str
) -> KeyedTexts:
    for location, record in records:
        key, text = record.get(id_field), record.get(text_field)
        for name, value in ((id_field, key), (text_field, text)):
            if value is None:
                raise location.error(f"no field `{name}`; it has {', '.join(map(shown, record))}.")
        if not isinstance(key, str | int) or not isinstance(text, str):
            raise location.error(
                f"`{id_field}` must be text or a whole number and `{text_field}` text, got "
                f"{shown(key)} and {shown(text)}."
            )
        yield location, str(key).strip(), text


class Keys:
    """The keys of the sentences read so far, each once; ``are_paths`` is as for `check_key`."""

    def __init__(self, *, are_paths: bool) -> None:
        self._are_paths = are_paths
        self._first: dict[str, int] = {}
        self._names: list[str] = []

    def add(self, key: str, location: Location) -> None:
        """Add the key of the next sentence, or raise `InputError`."""
        check_key(key, is_path=self._are_paths, where=f"{location}: ")
        if not key or not key.isprintable():
            raise location.error(f"an id must be a line of printable characters, got {shown(key)}.")
        if key in self._first:
            raise location.error(
                f"the id {shown(key)} is already that of record {self._first[key]:,}. Give every "
                "record an id of its own."
            )
        self._names.append(key)
        self._first[key] = len(self._names)

    def __getitem__(self, index: int) -> str:
        return self._names[index]
