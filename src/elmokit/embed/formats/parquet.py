"""Parquet: a row per sentence with ``id``, ``tokens`` and a column per layer. Needs pyarrow.

The ``id`` is the line number.

A layer is a list (words) of fixed-size lists (dimensions), or of pooled sentences one such list.
The columns are ``layer_0``, … or only ``top``, ``average`` or ``layer_k``. The schema holds the
metadata.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from elmokit.embed.formats.rows import TOKENS_KEY, Row, Sentence, closed_at_end
from elmokit.errors import needs_extra
from elmokit.files.lines import check_growth
from elmokit.weights.card import METADATA_KEY

with needs_extra("arrow", module="pyarrow"):
    import pyarrow as pa
    from pyarrow import parquet

_ROWS_TOGETHER = 64
_TOKENS = f"{TOKENS_KEY}."


def schema_of(metadata: Mapping[str, Any]) -> pa.Schema:
    """Return the columns of sentences whose vectors were made as ``metadata`` say."""
    numbers = range(metadata["num_layers"]) if metadata["layers"] == "all" else [metadata["layers"]]
    value = pa.float16() if metadata["dtype"] == "float16" else pa.float32()
    vector = pa.list_(value, metadata["dim"])
    layer = vector if metadata.get("pool") is not None else pa.list_(vector)
    fields = [("id", pa.int64()), (TOKENS_KEY, pa.list_(pa.string()))]
    fields += [(f"layer_{k}" if isinstance(k, int) else k, layer) for k in numbers]
    return pa.schema(fields, metadata={METADATA_KEY: json.dumps(metadata)})


def record_batch(rows: Sequence[Row], schema: pa.Schema) -> pa.RecordBatch:
    columns: dict[str, Any] = {
        "id": pa.array([row.line_number for row in rows], pa.int64()),
        TOKENS_KEY: pa.array([_encoded(row.tokens) for row in rows], pa.list_(pa.binary())),
    }
    layers = [field for field in schema if field.name not in columns]
    for k, field in enumerate(layers):
        is_pooled = pa.types.is_fixed_size_list(field.type)
        vector = field.type if is_pooled else field.type.value_type
        has_all = 2 if is_pooled else 3  # dimensions of all layers
        layer = [v[k] if v.ndim == has_all else v for v in (row.vectors for row in rows)]
        nothing = np.zeros(0, vector.value_type.to_pandas_dtype())
        values = pa.array(np.concatenate([nothing, *(one.reshape(-1) for one in layer)]))
        column = pa.FixedSizeListArray.from_arrays(values, vector.list_size)
        if not is_pooled:
            # sentence i is the vectors from offset i to offset i + 1
            offsets = pa.array(np.cumsum([0, *map(len, layer)]), pa.int32())
            column = pa.ListArray.from_arrays(offsets, column)
        columns[field.name] = column
    arrays = [columns[field.name].cast(field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _encoded(tokens: list[str] | None) -> list[bytes] | None:
    return None if tokens is None else [word.encode("utf-8", "replace") for word in tokens]


def write(
    path: Path, blocks: Iterable[Sequence[Row]], metadata: Mapping[str, Any], *, num_bytes: int
) -> None:
    """Write a row group per block."""
    schema = schema_of(metadata)
    writer = parquet.ParquetWriter(
        path, schema, compression="none", use_dictionary=False, write_statistics=False
    )
    with closed_at_end(writer):
        for rows in blocks:
            if rows:
                writer.write_batch(record_batch(rows, schema))


class Reader:
    """Reads `_ROWS_TOGETHER` rows at a time, or for single sentences a row group.

    A file whose footer states more than `most_bytes` is refused. Tokens are read as indices of the
    words of their dictionary.
    """

    def __init__(self, path: Path) -> None:
        self._file = parquet.ParquetFile(path, buffer_size=1 << 20, pre_buffer=False)
        columns = [self._file.schema.column(k) for k in range(len(self._file.schema))]
        texts = [column.path for column in columns if column.physical_type == "BYTE_ARRAY"]
        if others := [name for name in texts if not name.startswith(_TOKENS)]:
            raise ValueError(f"the column {others[0]} holds no numbers")
        if texts:
            self._file.close()
            self._file = parquet.ParquetFile(
                path, buffer_size=1 << 20, pre_buffer=False, read_dictionary=texts
            )
        groups = range(self._file.num_row_groups)
        # of columns the footer says more, but damaged statistics there would end the process
        sizes = [self._file.metadata.row_group(k).total_byte_size for k in groups]
        check_growth(path, sum(sizes), path.stat().st_size)
        ids = [self._file.read_row_group(k, columns=["id"]).column(0) for k in groups]
        self.indices = np.concatenate([np.zeros(0, np.int64), *(np.asarray(part) for part in ids)])
        self.names = None  # line numbers are the keys
        self._ends = np.cumsum([len(part) for part in ids])
        self._layers = [
            name for name in self._file.schema_arrow.names if name not in ("id", TOKENS_KEY)
        ]
        self._group: tuple[int, Any] | None = None

    def read(self, position: int) -> Sentence:
        number = int(np.searchsorted(self._ends, position, side="right"))
        if self._group is None or self._group[0] != number:
            self._group = None  # before the next one is read
            self._group = number, self._file.read_row_group(number).combine_chunks()
        table = self._group[1]
        row = position - int(self._ends[number]) + table.num_rows
        return next(self._sentences(table.slice(row, 1).to_batches()[0]))

    def __iter__(self) -> Iterator[Sentence]:
        for batch in self._file.iter_batches(batch_size=_ROWS_TOGETHER):
            yield from self._sentences(batch)

    def _sentences(self, batch: pa.RecordBatch) -> Iterator[Sentence]:
        tokens = batch.column(TOKENS_KEY) if TOKENS_KEY in batch.schema.names else None
        words = [] if tokens is None else tokens.values.dictionary.to_pylist()
        columns = [batch.column(name) for name in self._layers]
        for row in range(batch.num_rows):
            layers = [_array(column[row].values) for column in columns]
            sentence = None
            if tokens is not None and tokens[row].is_valid:
                sentence = [words[index] for index in tokens[row].values.indices.to_pylist()]
            yield sentence, layers[0] if len(layers) == 1 else np.stack(layers)

    def close(self) -> None:
        self._file.close()


def _array(words: Any) -> np.ndarray:
    """Return a list of vectors as (W, 2D), the numbers of one as (2D,)."""
    if not pa.types.is_fixed_size_list(words.type):
        return words.to_numpy(zero_copy_only=False)
    return words.flatten().to_numpy(zero_copy_only=False).reshape(len(words), words.type.list_size)


def read_metadata(path: Path) -> str:
    return parquet.read_schema(path).metadata[METADATA_KEY.encode()].decode()
