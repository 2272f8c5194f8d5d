"""Parquet: a row per sentence with ``id``, ``tokens`` and a column per layer. Needs pyarrow.

A layer is a list (words) of fixed-size lists (dimensions). The columns are ``layer_0``, … or only
``top``, ``average`` or ``layer_k``. The schema holds the metadata.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from elmokit.embed.writers.block import METADATA_KEY, Block
from elmokit.errors import MissingExtraError

try:
    import pyarrow as pa
    from pyarrow import parquet
except ImportError as error:
    raise MissingExtraError("pyarrow", extra="arrow") from error


class Writer:
    """Writes a row group per block."""

    def __init__(self, path: Path, metadata: Mapping[str, Any], *, num_bytes: int = 0) -> None:
        self._dim = metadata["dim"]
        layers = metadata["layers"]
        numbers = range(metadata["num_layers"]) if layers == "all" else [layers]
        columns = [f"layer_{k}" if isinstance(k, int) else k for k in numbers]
        self._stacked = layers == "all"
        value = pa.float16() if metadata["dtype"] == "float16" else pa.float32()
        layer = pa.list_(pa.list_(value, self._dim))
        fields = [("id", pa.int64()), ("tokens", pa.list_(pa.string()))]
        fields += [(name, layer) for name in columns]
        self._num_columns = len(columns)
        self._schema = pa.schema(fields, metadata={METADATA_KEY: json.dumps(metadata)})
        self._writer = parquet.ParquetWriter(
            path, self._schema, compression="none", use_dictionary=False, write_statistics=False
        )

    def write(self, block: Block) -> None:
        """Append sentences as one row group."""
        if not block.indices:
            return
        tokens = [[word.encode("utf-8", "replace") for word in words] for words in block.tokens]
        arrays: list[Any] = [pa.array(block.indices, pa.int64())]
        arrays.append(pa.array(tokens, pa.list_(pa.binary())).cast(pa.list_(pa.string())))
        lengths = [vectors.shape[-2] for vectors in block.vectors]
        offsets = pa.array(np.cumsum([0, *lengths]), pa.int32())
        for k in range(self._num_columns):
            layer = [vectors[k] if self._stacked else vectors for vectors in block.vectors]
            values = pa.array(np.concatenate(layer).reshape(-1))
            rows = pa.FixedSizeListArray.from_arrays(values, self._dim)
            arrays.append(pa.ListArray.from_arrays(offsets, rows))
        batch = pa.RecordBatch.from_arrays(
            [a.cast(field.type) for a, field in zip(arrays, self._schema, strict=True)],
            schema=self._schema,
        )
        self._writer.write_batch(batch)

    def close(self) -> None:
        """Finish the file."""
        self._writer.close()


def read_metadata(path: Path) -> str:
    """Return the metadata as JSON."""
    return parquet.read_schema(path).metadata[METADATA_KEY.encode()].decode()
