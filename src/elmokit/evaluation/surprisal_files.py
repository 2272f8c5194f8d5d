"""Rows of surprisal as TSV, JSON lines or Parquet.

The columns are the fields of `WordSurprisal` or `TypedWord`.
"""

import csv
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from elmokit.errors import InputError, needs_extra
from elmokit.evaluation.surprisal import TypedWord, WordProbability, WordSurprisal
from elmokit.files.atomic import atomic_file
from elmokit.files.json_files import is_json
from elmokit.files.lines import numbered_lines
from elmokit.weights.card import METADATA_KEY, ResultKind

Rows = Iterable[Any]
Metadata = Mapping[str, Any]
SUFFIXES = (".tsv", ".jsonl", ".parquet")
TYPED_COLUMNS = [field.name for field in fields(TypedWord)]
_ROWS_A_GROUP = 50_000


def columns_of(*, top: int) -> list[str]:
    """Return the columns of tokens; those of the likeliest words only if there are any."""
    names = [field.name for field in fields(WordSurprisal)]
    return [name for name in names if top or not name.endswith("_top")]


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


def write_jsonl(rows: Rows, stream: TextIO | StringIO, columns: Sequence[str]) -> None:
    for row in rows:
        values = {name: _plain(getattr(row, name)) for name in columns}
        stream.write(json.dumps(values, ensure_ascii=False) + "\n")


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(map(asdict, value))
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _write_parquet(rows: Rows, path: Path, columns: Sequence[str], metadata: Metadata) -> None:
    with needs_extra("arrow", module="pyarrow"):
        import pyarrow as pa
        from pyarrow import parquet
    likely = pa.list_(pa.struct([("word", pa.string()), ("probability", pa.float32())]))
    types = {
        str: pa.string(), str | None: pa.string(), int: pa.int64(), int | None: pa.int64(),
        float: pa.float32(), float | None: pa.float32(), bool: pa.bool_(),
        tuple[WordProbability, ...]: likely,
    }  # fmt: skip
    own = (*fields(TypedWord), *fields(WordSurprisal))
    kinds = {field.name: types[field.type] for field in own}  # pyright: ignore
    kind: ResultKind = "surprisal"
    made = {METADATA_KEY: json.dumps({"kind": kind, **metadata})}
    schema = pa.schema([(name, kinds[name]) for name in columns], metadata=made)
    remaining = iter(rows)
    with parquet.ParquetWriter(path, schema) as writer:
        while group := list(islice(remaining, _ROWS_A_GROUP)):
            table = {name: [_plain(getattr(row, name)) for row in group] for name in columns}
            writer.write_table(pa.table(table, schema=schema))


def check_format(path: Path) -> None:
    if path.suffix.lower() not in SUFFIXES:
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
        if path.suffix.lower() == ".parquet":
            _write_parquet(rows, temp_path, columns, metadata)
            return
        write = write_tsv if path.suffix.lower() == ".tsv" else write_jsonl
        with temp_path.open("w", encoding="utf-8", newline="") as stream:
            write(rows, stream, columns)
