"""Tables that surprisal reads (items with texts), and its rows as TSV, JSON lines or Parquet.

The columns are the fields of `WordSurprisal` or `TypedWord`; columns of the user's own table, which
are text, may stand before them.
"""

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from io import StringIO
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, TextIO

import numpy as np

from elmokit.corpus.readers import TextLine
from elmokit.errors import InputError, MissingExtraError, printable, shown
from elmokit.evaluation.surprisal import TypedWord, WordProbability, WordSurprisal
from elmokit.files.atomic import atomic_file
from elmokit.files.json_files import is_json
from elmokit.files.lines import numbered_lines
from elmokit.files.sources import plain_suffix
from elmokit.files.text_records import CHOOSE, table_rows
from elmokit.shapes import Float, Int
from elmokit.weights.card import METADATA_KEY, FileKind

Rows = Iterable[Any]
Metadata = Mapping[str, Any]
_ROWS_A_GROUP = 50_000


def columns_of(*, top: int) -> list[str]:
    names = [field.name for field in fields(WordSurprisal)]
    return [name for name in names if top or not name.endswith("_top")]


TYPED_COLUMNS = [field.name for field in fields(TypedWord)]


def write_tsv(rows: Rows, stream: TextIO | StringIO, columns: Sequence[str]) -> None:
    """Write a header and a line a row, quoted as in CSV where need be."""
    writer = csv.writer(stream, dialect="excel-tab", lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_cell(getattr(row, name)) for name in columns])


def _cell(value: Any) -> Any:
    if isinstance(value, float):
        return f"{value:.6f}"
    if isinstance(value, tuple):
        return " ".join(f"{likely.word}={likely.probability:.6f}" for likely in value)
    return int(value) if isinstance(value, bool) else value


def write_jsonl(
    rows: Rows, stream: TextIO | StringIO, columns: Sequence[str], *, ascii_only: bool = False
) -> None:
    for row in rows:
        values = {name: _plain(getattr(row, name)) for name in columns}
        stream.write(json.dumps(values, ensure_ascii=ascii_only) + "\n")


def _plain(value: Any) -> Any:
    return list(map(asdict, value)) if isinstance(value, tuple) else value


def _write_parquet(rows: Rows, path: Path, columns: Sequence[str], metadata: Metadata) -> None:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtraError("pyarrow", extra="arrow") from error
    likely = pa.list_(pa.struct([("word", pa.string()), ("probability", pa.float32())]))
    types = {
        str: pa.string(), str | None: pa.string(), int: pa.int64(), int | None: pa.int64(),
        float: pa.float32(), float | None: pa.float32(), bool: pa.bool_(),
        tuple[WordProbability, ...]: likely,
    }  # fmt: skip
    own = (*fields(TypedWord), *fields(WordSurprisal))
    kinds = {field.name: types[field.type] for field in own}  # pyright: ignore
    kind: FileKind = "surprisal"
    made = {METADATA_KEY: json.dumps({"kind": kind, **metadata})}
    schema = pa.schema([(name, kinds.get(name, pa.string())) for name in columns], metadata=made)
    remaining = iter(rows)
    with parquet.ParquetWriter(path, schema) as writer:
        while group := list(islice(remaining, _ROWS_A_GROUP)):
            table = {name: [_plain(getattr(row, name)) for row in group] for name in columns}
            writer.write_table(pa.table(table, schema=schema))


SUFFIXES = (".tsv", ".jsonl", ".parquet")


def check_format(path: Path) -> None:
    if path.suffix not in SUFFIXES:
        raise InputError(
            f"{path}: the suffix of the output must be {', '.join(SUFFIXES)}, got {path.suffix!r}."
        )


class TableShape(NamedTuple):
    columns: list[str]
    num_rows: int


def read_shape(path: Path) -> TableShape | None:
    """Return the shape of a table as text or JSON lines; None for any other text."""
    lines = (line for _, line in numbered_lines(path))
    first = next(lines, "")
    has_header = not is_json(first, dict)
    columns = first.split("\t") if has_header else list(json.loads(first))
    expected = (columns_of(top=0), columns_of(top=1), TYPED_COLUMNS)
    # files of older versions have no spelling
    older = [[name for name in names if name != "spelling"] for names in expected]
    if columns not in (*expected, *older):
        return None
    return TableShape(columns, sum(1 for _ in lines) + (not has_header))


def write_surprisal(rows: Rows, path: Path, metadata: Metadata, columns: Sequence[str]) -> None:
    """Write rows to a file, whole or not at all, in the format of its suffix.

    ``metadata`` is how they were made (`TextScorer.metadata`); only Parquet has a place for it.
    """
    check_format(path)
    with atomic_file(path) as temp_path:
        if path.suffix == ".parquet":
            _write_parquet(rows, temp_path, columns, metadata)
            return
        write = write_tsv if path.suffix == ".tsv" else write_jsonl
        with temp_path.open("w", encoding="utf-8", newline="") as stream:
            write(rows, stream, columns)


TABLE_SUFFIXES = (".csv", ".tsv")
_SENTENCE_END = re.compile(r"[.?!…]['\"”’)]*$")
_PLACES = ("file", "line", "sentence", "index", "word", "start", "end")
"""Columns of surprisals that give way to those of the same name in a table."""


class Table:
    """Columns of a table with a header: commas in ``.csv``, else tabs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        delimiter = "," if plain_suffix(path) == ".csv" else "\t"
        rows = table_rows(path, numbered_lines(path), delimiter)
        (_, self.header), *numbered = [(number, row) for number, row in rows if row] or [(0, [])]
        if not numbered:
            raise InputError(f"{path} has no rows below a header.")
        self.lines = [number for number, _ in numbered]
        for number, row in numbered:
            if len(row) != len(self.header):
                counts = f"{len(row)} columns, but the header has {len(self.header)}"
                raise InputError(f"{path}, line {number}: {counts}.")
        columns = zip(*(row for _, row in numbered), strict=True)
        self._columns = dict(zip(self.header, columns, strict=True))

    def __getitem__(self, name: str) -> list[str]:
        if name not in self._columns:
            columns = ", ".join(map(shown, self.header))
            raise InputError(f"{self.path} has no column {shown(name)}; it has {columns}. {CHOOSE}")
        return list(self._columns[name])

    def numbers(self, name: str) -> Float[np.ndarray, " N"]:
        """Return a column as numbers, NaN where it is empty or NA."""
        values = np.full(len(self.lines), np.nan)
        for row, text in enumerate(self[name]):
            try:
                if text.strip() not in ("", "NA", "NaN", "nan"):
                    values[row] = float(text)
            except ValueError as error:
                line = f"{self.path}, line {self.lines[row]}"
                raise InputError(
                    f"{line}: `{name}` must be a number, got {shown(text)}."
                ) from error
        return values

    def places(self, name: str, *, first: int) -> Int[np.ndarray, " N"]:
        """Return a column of places, counted from ``first``, counted from 0."""
        places = self.numbers(name) - first
        if np.isnan(places).any():
            line = self.lines[int(np.isnan(places).argmax())]
            raise InputError(f"{self.path}, line {line}: `{name}` is missing.")
        return places.astype(np.int64)


def sentences_of_items(
    items: Sequence[str], words: Sequence[str], places: Sequence[int]
) -> tuple[list[str], list[tuple[int, int]]]:
    """Put the words of every item together, in the order of their places, and cut sentences.

    Return the sentences, and for each row the number of its sentence and its index there.
    """
    of_item: dict[str, dict[int, str]] = {}
    for name, word, place in zip(items, words, places, strict=True):
        if len(word.split()) != 1:
            raise InputError(f"Item {shown(name)}, place {place}: {shown(word)} is not one word.")
        if of_item.setdefault(name, {}).setdefault(place, word) != word:
            raise InputError(f"Item {shown(name)} has two words at the same place: {place}.")
    sentences: list[list[str]] = []
    place_of: dict[tuple[str, int], tuple[int, int]] = {}
    for name, parts in of_item.items():
        sentences.append([])
        for place in sorted(parts):
            if sentences[-1] and _SENTENCE_END.search(sentences[-1][-1]):
                sentences.append([])
            place_of[name, place] = (len(sentences) - 1, len(sentences[-1]))
            sentences[-1].append(parts[place].strip())
    located = [place_of[name, place] for name, place in zip(items, places, strict=True)]
    return [" ".join(sentence) for sentence in sentences], located


class TableText:
    """Text in a column of tables, and the other columns, which go with what is scored.

    With ``item_column``, a row has a typed word, and rows of the same item are one text.
    """

    def __init__(
        self, paths: Sequence[Path], text_column: str, item_column: str | None = None
    ) -> None:
        tables = [Table(path) for path in paths]
        self._texts = [(table, table[text_column]) for table in tables]
        columns = dict.fromkeys(name for table in tables for name in table.header)
        if item_column is None:  # a word stays with its row
            del columns[text_column]
        self.columns = list(columns)
        rows = [
            (printable(table.path), line, dict(zip(table.header, values, strict=True)))
            for table in tables
            for line, *values in zip(table.lines, *(table[n] for n in table.header), strict=True)
        ]
        self._located: list[tuple[int, int]] | None = None
        if item_column is not None:
            if len(tables) > 1:
                raise InputError(f"Words of items are in one table, got {len(tables)}.")
            sentences, self._located = sentences_of_items(
                tables[0][item_column], tables[0][text_column], range(len(rows))
            )
            self._texts = [(tables[0], sentences)]
        self._rows = rows
        self._by_place = {(file, line): values for file, line, values in rows}

    def check(self, columns: Sequence[str]) -> list[str]:
        """Return the table's columns and those of ``columns`` that it has not itself."""
        computed = [name for name in columns if name not in _PLACES and name in self.columns]
        if computed:
            raise InputError(f"Column {shown(computed[0])} of the table is computed: rename it.")
        return [*self.columns, *(name for name in columns if name not in self.columns)]

    def lines(self) -> Iterator[TextLine]:
        for table, texts in self._texts:
            numbers = table.lines if self._located is None else range(1, len(texts) + 1)
            for number, text in zip(numbers, texts, strict=True):
                if text.strip():
                    yield TextLine(table.path, number, text)

    def joined(self, rows: Iterable[Any], columns: Sequence[str]) -> Iterator[SimpleNamespace]:
        """Yield scored rows with the other columns; of items, the table's rows in their order."""
        if self._located is None:
            for row in rows:
                values = {name: getattr(row, name) for name in columns}
                own = self._by_place[row.file, row.line]  # another table may lack a column
                yield SimpleNamespace(**values | {key: own.get(key, "") for key in self.columns})
            return
        words: dict[tuple[int | None, int], TypedWord] = {
            (row.line, row.index): row for row in rows
        }
        for (file, line, kept), (sentence, place) in zip(self._rows, self._located, strict=True):
            word = words.get((sentence + 1, place))
            if word is None or not word.num_tokens:
                raise InputError(f"{file}, line {line}: the tokenizer makes no token of this word.")
            values = {name: getattr(word, name) for name in columns}
            yield SimpleNamespace(**(values | {"file": file, "line": line} | kept))
