"""Records of one text file: a line of plain text or JSON, or a row of a table.

The suffix tells the kind of a file. In a file of another suffix, or standard input, JSON lines are
read if their field is named, and are otherwise refused: their keys would be words. Readers above
decide what a bad record means: corpora skip and count it, elsewhere it is an error. A bad line of a
table is an error everywhere: quotation marks may join it with others.
"""

import itertools
import json
import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from elmokit.errors import FormatError, Location, counted, needs_extra
from elmokit.files.json_files import is_json
from elmokit.files.lines import (
    MAX_LINE_BYTES,
    BadLine,
    csv_rows,
    decode_line,
    raw_lines,
    text_of_line,
)
from elmokit.files.sources import AnyFile, damage, file_kind, plain_suffix

_log = logging.getLogger(__name__)

WHOLE_LINES = "0"
"""As the name of a column: the whole line, whatever the suffix says."""
ONE_RECORD_A_LINE = (
    "Write a record on each line of a file named .jsonl (of a list: jq -c '.[]' IN > OUT.jsonl)."
)
CHOOSE = (
    "Choose with --column NAME the one that holds the text (a number from 1 in a table without a "
    "header; 0 reads whole lines of any text file)."
)
_MOST_ROWS, _ROWS_BYTES = 1024, 1 << 24
"""Rows of Parquet in memory, and bytes of them if all are about as long."""
_MAX_STATED_BYTES, _MAX_COMPRESSION = 1 << 27, 100
"""Of a row group: more bytes of text than this, and this many times those stored, are not read."""
_FASTA_SUFFIXES = (".fasta", ".fas", ".fa", ".faa", ".fna", ".ffn")
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_DELIMITERS = {".csv": ",", ".tsv": "\t"}


class TextRecord(NamedTuple):
    """The text of a record, or why there is none."""

    number: int
    """Where it begins: a line, of Parquet a row, from 1."""
    text: bytes | BadLine


class TextRecords:
    """The records of one file; iterate once.

    Args:
        path: The file, plain or compressed.
        text_field: Field of JSON lines, or column of Parquet and of tables (a number from 1: the
            first row is no header), that holds the text; None: ``text``. `WHOLE_LINES`: the lines
            as they are. In prose, which has no columns, a name is told to have no effect.
        max_line_bytes: Longer lines are `BadLine`; so that a record may hold a book, not those of
            JSON lines up to `MAX_LINE_BYTES`.

    Raises:
        FormatError: while reading, for a file that is no text, lacks the column or is damaged.
    """

    def __init__(
        self,
        path: AnyFile,
        *,
        text_field: str | None = None,
        max_line_bytes: int = MAX_LINE_BYTES,
    ) -> None:
        self.path, self.max_line_bytes = path, max_line_bytes
        self._given, self._text_field = text_field, text_field or "text"
        self.num_bytes = 0
        """Of the lines read so far, decompressed; 0 for Parquet."""

    def __iter__(self) -> Iterator[TextRecord]:
        kind, delimiter = file_kind(self.path), _DELIMITERS.get(plain_suffix(self.path))
        if kind == "parquet":
            return self._parquet_records()
        lines = self._lines(self.max_line_bytes)
        if self._given == WHOLE_LINES:
            return self._text_records(lines)
        if kind == "jsonl":
            return self._json_records(self._lines(max(MAX_LINE_BYTES, self.max_line_bytes)))
        return self._table_records(lines, delimiter) if delimiter else self._prose_or_json(lines)

    def _lines(self, max_line_bytes: int) -> Iterator[tuple[int, bytes | None]]:
        for number, raw in enumerate(raw_lines(self.path, max_line_bytes), 1):
            self.num_bytes += len(raw or b"") + 1
            yield number, raw

    def _prose_or_json(self, lines: Iterator[tuple[int, bytes | None]]) -> Iterator[TextRecord]:
        head: list[tuple[int, bytes | None]] = []
        for line in lines:
            head.append(line)
            if line[1] is None or line[1].strip():
                break
        first = (head[-1][1] if head else None) or b""
        lines = itertools.chain(head, lines)
        if is_json(first, dict):
            if self._given is None:
                raise FormatError(
                    f"{self.path}: not read as prose, because it looks like JSON lines. Name it "
                    ".jsonl, or name the field with --column NAME."
                )
            return self._json_records(lines)
        if plain_suffix(self.path) == ".json" and first.lstrip()[:1] in (b"{", b"["):
            raise FormatError(f"{self.path}: JSON, not text. {ONE_RECORD_A_LINE}")
        self._check_prose(first)
        return self._text_records(lines)

    def _check_prose(self, first: bytes) -> None:
        if plain_suffix(self.path) in _FASTA_SUFFIXES and first.startswith(b">"):
            raise FormatError(
                f"{self.path}: FASTA, whose headers are no text. Write a sequence on each line, "
                "and read it with --tokenizer characters."
            )
        if self._given is None:
            return
        if self._given.isdecimal() or self._given.encode("utf-8", "surrogateescape") in re.split(
            rb"[\t,\r]", first
        ):
            raise FormatError(
                f"{self.path}: its name says that it has no columns. Name a table .csv or .tsv; "
                "--column 0 reads whole lines."
            )
        _log.warning("%s has no columns: %r has no effect there", self.path, self._given)

    def _text_records(self, lines: Iterator[tuple[int, bytes | None]]) -> Iterator[TextRecord]:
        for number, raw in lines:
            yield TextRecord(number, BadLine("too_long") if raw is None else raw)

    # --- tables

    def _table_records(
        self, lines: Iterator[tuple[int, bytes | None]], delimiter: str
    ) -> Iterator[TextRecord]:
        texts = ((number, text_of_line(raw, self.path, number)) for number, raw in lines)
        rows = table_rows(self.path, texts, delimiter)
        first = next(rows, None)
        if first is None:
            return
        numbers = list(map(str, range(1, len(first[1]) + 1)))
        columns = numbers if self._text_field.isdecimal() else [name.strip() for name in first[1]]
        self._check_has(columns)
        at = columns.index(self._text_field)
        if self._text_field.isdecimal():
            rows = itertools.chain([first], rows)
        for number, row in rows:
            yield self._record(number, row[at] if at < len(row) else None)

    def _check_has(self, columns: Sequence[str]) -> None:
        if self._text_field not in columns:
            raise FormatError(
                f"{self.path}: no column {self._text_field!r}; it has: {', '.join(columns[:20])}. "
                f"{CHOOSE}"
            )

    def _record(self, number: int, text: object) -> TextRecord:
        if isinstance(text, str):
            text = text.encode("utf-8", "surrogatepass")
        if isinstance(text, bytes):
            return TextRecord(number, text)
        return TextRecord(number, BadLine("no_text", note=f"no string in {self._text_field!r}."))

    # --- JSON lines

    def _json_records(self, lines: Iterator[tuple[int, bytes | None]]) -> Iterator[TextRecord]:
        for number, raw in lines:
            line = decode_line(raw)
            if isinstance(line, BadLine) or not line.strip():
                yield TextRecord(number, line if isinstance(line, BadLine) else BadLine("blank"))
                continue
            try:
                record = json.loads(line)
            except (ValueError, RecursionError) as error:
                note = f"invalid JSON: {error}. {ONE_RECORD_A_LINE}"
                yield TextRecord(number, BadLine("bad_json", note=note))
                continue
            fields = record if isinstance(record, dict) else {}
            if isinstance(text := fields.get(self._text_field), str):
                yield self._record(number, text)
            else:
                names = ", ".join([*fields][:20]) or "no fields"
                note = f"no string in the field {self._text_field!r}; the record has: {names}."
                yield TextRecord(number, BadLine("no_text", note=f"{note} {CHOOSE}"))

    # --- Parquet

    def _parquet_records(self) -> Iterator[TextRecord]:
        with needs_extra("arrow", module="pyarrow"):
            import pyarrow as arrow
            import pyarrow.parquet as parquet
        advice = "Copy or write the file again."
        with self.path.open("rb") as source, damage(self.path, advice, what="damaged Parquet file"):
            options = {"buffer_size": 1 << 20, "pre_buffer": False}
            file, field = parquet.ParquetFile(source, **options), self._text_field
            self._check_has(list(file.schema_arrow.names))
            if arrow.types.is_nested(kind := file.schema_arrow.field(field).type):
                raise FormatError(f"{self.path}: column {field!r} holds {kind}, not strings.")
            rows_together = _rows_together(file, field)
            if rows_together:  # as a dictionary, a text stored once for many rows is held once
                file = parquet.ParquetFile(source, read_dictionary=[field], **options)
            batches = itertools.chain.from_iterable(
                file.iter_batches(count, row_groups=[group], columns=[field])
                for group, count in enumerate(rows_together or [2] * file.num_row_groups)
            )
            number = 0
            for batch in batches:
                for text in _texts(batch.column(field), arrow):
                    number += 1
                    yield self._record(number, text)


def _texts(column: Any, arrow: Any) -> Iterator[object]:
    """Yield the values of a column; strings as bytes, because they may be no UTF-8."""
    if arrow.types.is_dictionary(column.type):
        values, places = column.dictionary, column.indices.to_pylist()
    else:
        values, places = column, range(len(column))
    for kind, as_bytes in (
        (arrow.string(), arrow.binary()), (arrow.large_string(), arrow.large_binary())
    ):  # fmt: skip
        values = values.cast(as_bytes) if values.type == kind else values
    for place in places:
        yield None if place is None else values[place].as_py()


def _rows_together(file: Any, field: str) -> list[int]:
    """Bound what each row group becomes in memory; return how many of its rows are read at once.

    Nothing is returned for delta encodings, which are not read as a dictionary: there a long text
    may be the beginning of many rows.
    """
    footer = file.metadata
    paths = [file.schema.column(k).path for k in range(len(file.schema))]
    # other columns are not looked at: damaged statistics there would end the process
    number = paths.index(field)
    counts, is_delta = [], False
    for group in range(footer.num_row_groups):
        stored, num_rows = footer.row_group(group).column(number), footer.row_group(group).num_rows
        size, num_bytes = stored.total_uncompressed_size, stored.total_compressed_size
        if size > _MAX_STATED_BYTES + _MAX_COMPRESSION * num_bytes:
            raise ValueError(f"row group {group} states {size:,} bytes of text")
        is_delta |= any(name.startswith("DELTA") for name in stored.encodings)
        counts.append(max(2, min(_MOST_ROWS, num_rows * _ROWS_BYTES // max(size, 1))))
    return [] if is_delta else counts


def table_rows(
    path: AnyFile, lines: Iterable[tuple[int, str]], delimiter: str
) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not blank, with the number of their first line.

    Between tabs, quotation marks are text, except around a cell with doubled marks and no single
    one, as elmokit and spreadsheets write it. ``lines`` are numbered from 1.
    """
    if delimiter == ",":
        rows = csv_rows(path, (line for _, line in lines))
    else:
        rows = (
            (number, list(map(_unquoted, line.split(delimiter))))
            for number, line in lines
            if line.strip()
        )
    return (row for row in rows if row[1])


def _unquoted(cell: str) -> str:
    is_quoted = '""' in cell[1:-1] and _QUOTED.fullmatch(cell)
    return cell[1:-1].replace('""', '"') if is_quoted else cell


def rows_by_column(
    path: Path, rows: Iterator[tuple[int, list[str]]]
) -> Iterator[tuple[Location, dict[str, str]]]:
    """Yield the rows below a header as texts by column."""
    number, header = next(rows, (1, []))
    header = [name.strip() for name in header]
    twice = [name for name in header if name and header.count(name) > 1]
    if twice:
        raise Location(path=path, line=number).error(
            f"the header names the column {twice[0]!r} twice: {', '.join(header)}."
        )
    for number, row in rows:
        location = Location(path=path, line=number)
        if len(row) != len(header):
            raise location.error(
                f"{counted(len(row), 'column')}, but the header names {len(header)} "
                f"({', '.join(header)}). Every row needs all of them."
            )
        yield location, dict(zip(header, row, strict=True))
