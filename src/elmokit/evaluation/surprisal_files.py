"""Rows of surprisal as text with tabs, JSON lines or Parquet.

The columns are the fields of `elmokit.evaluation.surprisal.WordSurprisal`; those of the likeliest
words are left out if none were asked for.
"""

import csv
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from elmokit.errors import InputError, MissingExtraError
from elmokit.evaluation.surprisal import WordProbability, WordSurprisal
from elmokit.files.atomic import atomic_file
from elmokit.files.json_files import is_json
from elmokit.files.lines import numbered_lines
from elmokit.weights.result_metadata import METADATA_KEY, FileKind


@runtime_checkable
class Writable(Protocol):
    """A text stream."""

    def write(self, text: str, /) -> object:
        """Write text."""
        ...


Rows = Iterable[WordSurprisal]
Metadata = Mapping[str, Any]
_ROWS_A_GROUP = 50_000


def columns_of(*, top: int) -> list[str]:
    """Return the names of the columns."""
    names = [field.name for field in fields(WordSurprisal)]
    return [name for name in names if top or not name.endswith("_top")]


def write_tsv(rows: Rows, stream: Writable, columns: Sequence[str]) -> None:
    """Write a header and a line a row, quoted as in CSV where need be.

    Figures have six decimals; likeliest words are ``word=probability``, divided by spaces.
    """
    writer = csv.writer(stream, dialect="excel-tab", lineterminator="\n")
    writer.writerow(columns)
    values = attrgetter(*columns)
    kinds = {field.name: field.type for field in fields(WordSurprisal)}
    written = [(i, way) for i, name in enumerate(columns) if (way := _CELLS.get(kinds[name]))]
    for row in rows:
        cells = list(values(row))
        for i, way in written:
            cells[i] = way(cells[i])
        writer.writerow(cells)


def write_jsonl(
    rows: Rows, stream: Writable, columns: Sequence[str], *, ascii_only: bool = False
) -> None:
    """Write a JSON object a row; ``ascii_only`` is for streams that are not UTF-8."""
    for row in rows:
        values = {name: _plain(getattr(row, name)) for name in columns}
        stream.write(json.dumps(values, ensure_ascii=ascii_only) + "\n")


def _likeliest(words: tuple[WordProbability, ...]) -> str:
    return " ".join(f"{one.word}={one.probability:.6f}" for one in words)


_CELLS: dict[Any, Callable[[Any], Any]] = {
    float: "{:.6f}".format, bool: int, tuple[WordProbability, ...]: _likeliest,
}  # fmt: skip
"""How values of some types are written as text; the others are as they are."""


def _plain(value: Any) -> Any:
    return [asdict(one) for one in value] if isinstance(value, tuple) else value


def _text_writer(write: Callable[[Rows, Writable, Sequence[str]], None]) -> "_WriteFile":
    def write_file(rows: Rows, path: Path, columns: Sequence[str], metadata: Metadata) -> None:
        with path.open("w", encoding="utf-8", newline="") as stream:
            write(rows, stream, columns)

    return write_file


def _write_parquet(rows: Rows, path: Path, columns: Sequence[str], metadata: Metadata) -> None:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtraError("pyarrow", extra="arrow") from error
    likely = pa.list_(pa.struct([("word", pa.string()), ("probability", pa.float32())]))
    types = {
        str: pa.string(), str | None: pa.string(), int: pa.int64(), int | None: pa.int64(),
        float: pa.float32(), bool: pa.bool_(), tuple[WordProbability, ...]: likely,
    }  # fmt: skip
    kinds = {field.name: types[field.type] for field in fields(WordSurprisal)}  # pyright: ignore
    kind: FileKind = "surprisal"
    made = {METADATA_KEY: json.dumps({"kind": kind, **metadata})}
    schema = pa.schema([(name, kinds[name]) for name in columns], metadata=made)
    remaining = iter(rows)
    with parquet.ParquetWriter(path, schema) as writer:
        while group := list(islice(remaining, _ROWS_A_GROUP)):
            table = {name: [_plain(getattr(row, name)) for row in group] for name in columns}
            writer.write_table(pa.table(table, schema=schema))


_WriteFile = Callable[[Rows, Path, Sequence[str], Metadata], None]
FORMATS: dict[str, _WriteFile] = {
    ".tsv": _text_writer(write_tsv),
    ".jsonl": _text_writer(write_jsonl),
    ".parquet": _write_parquet,
}
"""By the suffix of the file."""


def check_format(path: Path) -> None:
    """Refuse a file of an unknown suffix, before any work.

    Raises:
        InputError: naming those that are known.
    """
    if path.suffix not in FORMATS:
        raise InputError(
            f"{path}: the suffix of the output must be {', '.join(FORMATS)}, got {path.suffix!r}."
        )


@dataclass(frozen=True)
class TableShape:
    """What a table consists of."""

    columns: list[str]
    num_rows: int


def read_shape(path: Path) -> TableShape | None:
    """Return the shape of a table as text or JSON lines; None for any other file.

    Raises:
        FormatError: if it is no text.
    """
    lines = (line for _, line in numbered_lines(path))
    first = next(lines, "")
    has_header = not is_json(first, dict)
    columns = first.split("\t") if has_header else list(json.loads(first))
    if columns not in (columns_of(top=0), columns_of(top=1)):
        return None
    return TableShape(columns, sum(1 for _ in lines) + (not has_header))


def write_surprisal(rows: Rows, path: Path, metadata: Metadata, *, top: int) -> None:
    """Write rows to a file, whole or not at all, in the format of its suffix.

    ``metadata`` is how they were made (`TextScorer.metadata`); only Parquet has a place for it.
    """
    check_format(path)
    with atomic_file(path) as temp_path:
        FORMATS[path.suffix](rows, temp_path, columns_of(top=top), metadata)
