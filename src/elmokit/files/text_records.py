"""Records of one text file: a line of plain text or JSON, a row of a table, a FASTA sequence.

The suffix tells the kind of a file. A file of another suffix, or standard input, that holds JSON
lines or a table is read as such if its field or column is named, and is otherwise refused: its keys
and separators would be words. Readers above decide what a bad record means: corpora skip and count
it, elsewhere it is an error.
"""

import csv
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from elmokit.errors import FormatError, InputError, Location, MissingExtraError
from elmokit.files.json_files import is_json
from elmokit.files.lines import MAX_LINE_BYTES, BadLine, csv_rows, decode_line, raw_lines
from elmokit.files.sources import AnyFile, damage, file_kind, plain_suffix

WHOLE_LINES = "0"
"""As the name of a column: the whole line, whatever the file looks like."""
ONE_RECORD_A_LINE = (
    "Write a record on each line of a file named .jsonl (of a list: jq -c '.[]' IN > OUT.jsonl)."
)
CHOOSE = (
    "Choose with --column NAME the one that holds the text (a number from 1 in a table without a "
    "header; 0 reads whole lines of any file as text)."
)
_SNIFFED_LINES, _SNIFFED_BYTES = 10, 1 << 16
_ROWS_TOGETHER, _LONG_ROWS_TOGETHER = 256, 4
"""Rows of Parquet in memory, and if a short file can hold many long ones."""
_MAX_STATED_BYTES, _MAX_COMPRESSION = 1 << 27, 100
"""Of a row group: more bytes of text than this, and this many times those stored, are not read."""
_BINARY = {"string": "binary", "large_string": "large_binary", "string_view": "binary_view"}
"""Types of Arrow whose texts must be UTF-8, and types of the same layout for any bytes."""
_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_COLUMN_NAME = re.compile(r"[^\W\d][\w.\-]*")

Lines = Iterator[tuple[int, bytes | None]]
"""(number from 1, line), as from `raw_lines`."""


class TextRecord(NamedTuple):
    """The text of a record, or why there is none."""

    number: int
    """Where it begins: a line, of Parquet a row, from 1."""
    text: bytes | BadLine
    key: Any = None
    """Value of the field of ids, if one was named, or the id of a FASTA sequence."""


class TextRecords:
    """The records of one file; iterate once.

    Args:
        path: The file, plain or compressed, but no archive.
        text_field: Field of JSON lines, or column of Parquet and of tables (a number from 1: the
            first row is no header), that holds the text; None: ``text``. `WHOLE_LINES`: the lines
            as they are. Prose has no columns, so this does not matter there.
        id_field: Field or column of the keys.
        max_line_bytes: Longer lines are `BadLine`; so that a record may hold a book, not those of
            JSON lines up to `MAX_LINE_BYTES`.

    Raises:
        FormatError: while reading, for a file that is no text, lacks the column or is damaged.
        InputError: for ``id_field`` and a file without fields.
    """

    def __init__(
        self,
        path: AnyFile,
        *,
        text_field: str | None = None,
        id_field: str | None = None,
        max_line_bytes: int = MAX_LINE_BYTES,
    ) -> None:
        self.path, self.max_line_bytes = path, max_line_bytes
        self._given, self._text_field, self._id_field = text_field, text_field or "text", id_field
        self.num_bytes = 0
        """Of the lines read so far, decompressed; 0 for Parquet."""

    def __iter__(self) -> Iterator[TextRecord]:
        kind, delimiter = file_kind(self.path), _DELIMITERS.get(plain_suffix(self.path))
        if kind == "parquet":
            return self._parquet_records()
        if kind == "fasta":
            return self._fasta_records()
        if kind == "jsonl":
            return self._json_records(self._lines(max(MAX_LINE_BYTES, self.max_line_bytes)))
        if delimiter and self._given != WHOLE_LINES:
            return self._table_records(self._lines(self.max_line_bytes), delimiter)
        return self._text_records()

    def _lines(self, max_line_bytes: int) -> Lines:
        for number, raw in enumerate(raw_lines(self.path, max_line_bytes), 1):
            self.num_bytes += len(raw or b"") + 1
            yield number, raw

    def _text_records(self) -> Iterator[TextRecord]:
        lines, structure = self._lines(self.max_line_bytes), None
        if self._given != WHOLE_LINES:
            head = list(_first_lines(lines))
            lines = itertools.chain(head, lines)
            structure = self._structure([raw for _, raw in head if raw and raw.strip()])
        if structure is not None and self._given is None:
            looks = f"a table with {structure!r} between columns. {CHOOSE}"
            if structure == "{":
                looks = "JSON lines. Name it .jsonl, or name the field with --column NAME."
            raise FormatError(f"{self.path}: not read as prose, because it looks like {looks}")
        if structure == "{":
            yield from self._json_records(lines)
        elif structure is not None:
            yield from self._table_records(lines, structure)
        elif self._id_field is not None:
            raise InputError(
                f"{self.path}: plain text has no field {self._id_field!r} of ids. --id-field is "
                "for .jsonl, .csv, .tsv and .parquet; FASTA (.fasta, .fa, …) has ids of its own."
            )
        else:
            for number, raw in lines:
                yield TextRecord(number, BadLine("too_long") if raw is None else raw)

    def _structure(self, head: Sequence[bytes]) -> str | None:
        """Return the delimiter of a table, ``{`` for JSON lines, None for prose."""
        if not head:
            return None
        if is_json(head[0], dict):
            return "{"
        if plain_suffix(self.path) == ".json" and head[0].lstrip()[:1] in (b"{", b"["):
            raise FormatError(f"{self.path}: JSON, not text. {ONE_RECORD_A_LINE}")
        lines = [line for raw in head if isinstance(line := decode_line(raw), str)]
        if self._given is not None and lines:  # a first line that names it is a header
            for delimiter in _DELIMITERS.values():
                if self._given in (names := lines[0].split(delimiter)) and len(names) > 1:
                    return delimiter
        return delimiter_of(lines)

    # --- tables

    def _table_records(self, lines: Lines, delimiter: str) -> Iterator[TextRecord]:
        faults: list[TextRecord] = []

        def readable() -> Iterator[tuple[int, str]]:
            for number, raw in lines:
                text = decode_line(raw)
                if isinstance(text, BadLine):
                    faults.append(TextRecord(number, text))
                else:
                    yield number, text

        columns: list[int | None] | None = None
        for number, row in table_rows(self.path, readable(), delimiter):
            yield from faults
            faults.clear()
            if not row:
                yield TextRecord(number, BadLine("blank"))
                continue
            if columns is None:
                columns = self._columns(row)
                if not self._text_field.isdecimal():
                    continue
            text, key = (
                row[at] if at is not None and at < len(row) else None for at in columns
            )  # fmt: skip
            yield self._record(number, text, key)
        yield from faults

    def _columns(self, first: Sequence[str]) -> list[int | None]:
        names = [name.strip() for name in first]
        numbers = [str(number) for number in range(1, len(first) + 1)]
        places: list[int | None] = []
        for field in (self._text_field, self._id_field):
            columns = numbers if field is not None and field.isdecimal() else names
            self._check_has(columns, field)
            places.append(None if field is None else columns.index(field))
        return places

    def _check_has(self, columns: Sequence[str], field: str | None) -> None:
        if field is not None and field not in columns:
            advice = CHOOSE if field == self._text_field else ""
            raise FormatError(
                f"{self.path}: no column {field!r}; it has: {', '.join(columns[:20])}. {advice}"
            )

    def _record(self, number: int, text: object, key: object = None) -> TextRecord:
        if isinstance(text, str):
            # an escaped lone surrogate of JSON passes through and then fails as UTF-8
            return TextRecord(number, text.encode("utf-8", "surrogatepass"), key)
        if isinstance(text, bytes):
            return TextRecord(number, text, key)
        return TextRecord(number, BadLine("no_text", note=f"no string in {self._text_field!r}"))

    # --- JSON lines

    def _json_records(self, lines: Lines) -> Iterator[TextRecord]:
        for number, raw in lines:
            line = decode_line(raw)
            if isinstance(line, BadLine) or not line.strip():
                yield TextRecord(number, line if isinstance(line, BadLine) else BadLine("blank"))
                continue
            try:
                record = json.loads(line)
            except (ValueError, RecursionError) as error:
                yield TextRecord(number, BadLine("bad_json", note=f"invalid JSON: {error}"))
                continue
            fields = record if isinstance(record, dict) else {}
            if isinstance(text := fields.get(self._text_field), str):
                yield self._record(number, text, fields.get(self._id_field or ""))
            else:
                names = ", ".join([*fields][:20]) or "no fields"
                note = f"no string in the field {self._text_field!r}; the record has: {names}"
                yield TextRecord(number, BadLine("no_text", note=note))

    # --- FASTA

    def _fasta_records(self) -> Iterator[TextRecord]:
        """Yield each sequence with blanks between its letters, which makes each letter a token."""
        start, key = 0, ""
        letters: list[str] = []
        for number, raw in self._lines(MAX_LINE_BYTES):
            line = decode_line(raw)
            if isinstance(line, BadLine):
                yield TextRecord(number, line)
            elif line.startswith(">"):
                if start:
                    yield self._record(start, " ".join("".join(letters)), key)
                header = line[1:].split(None, 1)
                start, key, letters = number, header[0] if header else "", []
            elif start:
                letters.append("".join(line.split()))
            elif line.strip() and not line.startswith(";"):  # old files begin with such comments
                raise Location(path=self.path, line=number).error(
                    "expected a FASTA header, which begins with `>`. Name prose .txt."
                )
        if start:
            yield self._record(start, " ".join("".join(letters)), key)

    # --- Parquet

    def _parquet_records(self) -> Iterator[TextRecord]:
        try:
            import pyarrow as arrow
            import pyarrow.parquet as parquet
        except ImportError as error:
            raise MissingExtraError("pyarrow", extra="arrow") from error
        number, advice = 0, "Copy or write the file again."
        with self.path.open("rb") as source, damage(self.path, advice, what="damaged Parquet file"):
            footer = parquet.ParquetFile(source)
            fields = [field for field in (self._text_field, self._id_field) if field is not None]
            for field in fields:
                self._check_has(list(footer.schema_arrow.names), field)
            types = [footer.schema_arrow.field(field).type for field in fields]
            types = [t.value_type if arrow.types.is_dictionary(t) else t for t in types]
            if str(types[0]) not in _BINARY or any(map(arrow.types.is_nested, types)):
                raise FormatError(
                    f"{self.path}: column {fields[0]!r} must hold strings, and one of ids no "
                    f"lists; got {', '.join(map(str, types))}."
                )
            paths = [footer.schema.column(k).path for k in range(len(footer.schema))]
            numbers = [number for number, path in enumerate(paths) if path in fields]
            is_shared = self._check_text_columns(footer.metadata, numbers)
            file = parquet.ParquetFile(
                source, buffer_size=1 << 20, pre_buffer=False,
                read_dictionary=fields if is_shared else (),
            )  # fmt: skip
            rows_together = _ROWS_TOGETHER if is_shared else _LONG_ROWS_TOGETHER
            for batch in file.iter_batches(rows_together, columns=fields):
                columns = [_texts_of(arrow, batch.column(field)) for field in fields]
                if self._id_field is None:
                    columns.append(itertools.repeat(None, len(batch)))
                for text, key in zip(*columns, strict=True):
                    number += 1
                    if isinstance(key, bytes):
                        key = key.decode("utf-8", "backslashreplace")
                    yield self._record(number, text, key)

    def _check_text_columns(self, footer: Any, numbers: list[int]) -> bool:
        """Bound what columns become in memory; return whether a text of many rows is kept once.

        pyarrow can keep it once unless the texts are stored by what they share with the one before.
        """
        is_shared = True
        # other columns are not looked at: damaged statistics there would end the process
        for group, number in itertools.product(range(footer.num_row_groups), numbers):
            stored = footer.row_group(group).column(number)
            if stored.physical_type != "BYTE_ARRAY":
                continue
            size, num_bytes = stored.total_uncompressed_size, stored.total_compressed_size
            if size > _MAX_STATED_BYTES + _MAX_COMPRESSION * num_bytes:
                raise ValueError(f"row group {group} states {size:,} bytes of text")
            is_shared &= not any(name.startswith("DELTA") for name in stored.encodings)
        return is_shared


def _first_lines(lines: Lines) -> Lines:
    num_bytes = 0
    for count, (number, raw) in enumerate(lines, 1):
        yield number, raw
        num_bytes += len(raw or b"")
        if count == _SNIFFED_LINES or num_bytes > _SNIFFED_BYTES:
            return


def _texts_of(arrow: Any, column: Any) -> Iterator[Any]:
    """Yield the texts of a column as bytes, which may be no UTF-8, or its numbers."""
    values, indices = column, range(len(column))
    if arrow.types.is_dictionary(column.type):
        values, indices = column.dictionary, column.indices.to_pylist()
    if (kind := str(values.type)) in _BINARY:
        values = values.cast(getattr(arrow, _BINARY[kind])())
    for index in indices:
        yield None if index is None else values[index].as_py()


def table_rows(
    path: AnyFile, lines: Iterable[tuple[int, str]], delimiter: str
) -> Iterator[tuple[int, list[str]]]:
    """Yield rows with the number of their first line; a blank line is an empty row.

    Quotation marks have a meaning between commas only. ``lines`` are numbered from 1.
    """
    if delimiter == ",":
        yield from csv_rows(path, (line for _, line in lines))
        return
    for number, line in lines:
        yield number, line.split(delimiter) if line.strip() else []


def delimiter_of(lines: Sequence[str]) -> str | None:
    """Return what separates the columns of lines that look like a table; None for prose.

    Tabs do if three lines or more have the same number of them inside. Commas do if, besides, the
    first line has nothing but distinct names between them: prose with commas is prose.
    """
    tabs = {line.strip("\t").count("\t") for line in lines}
    if len(lines) >= 3 and len(tabs) == 1 and tabs != {0}:
        return "\t"
    names = lines[0].split(",") if lines else []
    if len(names) < 2 or len({*names}) < len(names) or not all(map(_COLUMN_NAME.fullmatch, names)):
        return None
    try:
        rows = list(csv.reader(f"{line}\n" for line in lines[1:]))
    except csv.Error:  # a field beyond csv's limit: no table that anybody typed
        return None
    rows = rows[:-1] if len(rows) > 2 else rows  # the last may go on in later lines
    return "," if len(rows) >= 2 and all(len(row) == len(names) for row in rows) else None
