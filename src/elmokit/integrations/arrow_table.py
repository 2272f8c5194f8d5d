"""Vectors as columns of Arrow tables: of whole texts, and of occurrences of words (``arrow``).

The columns are those of `elmokit.embed.formats.parquet`: ``tokens``, and one per layer with a list
of vectors.
"""

import itertools
import json
import os
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from elmokit.embed.embedder import Embedder
from elmokit.embed.formats.parquet import pa, parquet, record_batch, schema_of
from elmokit.embed.formats.rows import Row
from elmokit.embed.numbered_lines import OwnLines
from elmokit.embed.options import EmbedOptions
from elmokit.errors import InputError
from elmokit.files.atomic import atomic_file
from elmokit.inference.results import Layers, check_one_layer
from elmokit.integrations.shared import AnyModel
from elmokit.text.alignment import align
from elmokit.text.given_sentences import check_is_list, check_text, check_words
from elmokit.text.normalization import normalize
from elmokit.weights.card import METADATA_KEY, FileKind

DEFAULT_ROWS = 4096
"""Rows of a batch, and of a Parquet row group: 4 MB with vectors of 256."""


class TableEmbedder:
    """Add the vectors of a text column to tables: a callable for engines that start it anywhere.

    ``column`` holds a sentence a row; null is an empty one. ``options`` may say layers, pooling,
    state policy, dtype and tokenizer; the rest is as for `Embedder.load`.
    """

    def __init__(
        self,
        model: AnyModel = None,
        *,
        column: str = "text",
        options: EmbedOptions | None = None,
        precision: str = "fp32",
        device: str = "auto",
        threads: int | None = None,
    ) -> None:
        options = options or EmbedOptions(layers="average")
        embedder = Embedder.load(model, precision=precision, device=device, num_threads=threads)
        options.check_values(num_layers=embedder.num_layers)
        if options.state == "carry":
            raise InputError('state="carry" needs the whole text, not tables of it.')
        self.column, self._lines = column, OwnLines(embedder, options)
        self._all_columns = schema_of(self._lines.metadata())
        self.schema = self._all_columns.remove(0)  # the number of the line

    def __call__(self, table: pa.Table) -> pa.Table:
        """Return a table with the columns added."""
        names = table.column_names
        if self.column not in names or not set(names).isdisjoint(self.schema.names):
            made = ", ".join(self.schema.names)
            raise InputError(
                f"The table {names} needs a column {self.column!r} and none of {made}."
            )
        texts = ["" if text is None else text for text in table.column(self.column).to_pylist()]
        for number, text in enumerate(texts):
            check_text(text, where=f"row {number} of the column {self.column!r}")
        rows = [
            Row(number, "", None, line.words, line.vectors)
            for number, line in enumerate(self._lines.stream(texts))
        ]
        added = record_batch(rows, self._all_columns)
        for name in self.schema.names:
            table = table.append_column(self.schema.field(name), added.column(name))
        return table


def occurrence_batches(
    embedder: Embedder,
    texts: Iterable[str],
    *,
    layers: Layers | str = "average",
    words: Iterable[str] | None = None,
    rows: int = DEFAULT_ROWS,
) -> Iterator[pa.RecordBatch]:
    """Yield Arrow batches with a row for every word of every text, in order.

    ``words`` limits them, as the tokenizer divides the text, in any spelling that the model reads
    alike. ``layers`` is ``"average"``, ``"top"`` or the number of a layer. ``start`` and ``end``
    are null where the words could not be found in the text.
    """
    check_one_layer(layers)
    if rows < 1:
        raise InputError(f"`rows` must be at least 1, got {rows}.")
    check_is_list(texts, name="texts")
    wanted = None
    if words is not None:
        wanted = frozenset(normalize(word, embedder.normalization) for word in check_words(words))
    occurrences = _occurrences(embedder, texts, layers, wanted)
    schema = _schema(embedder, layers)

    def batches() -> Iterator[pa.RecordBatch]:
        while block := list(itertools.islice(occurrences, rows)):
            *columns, vectors = zip(*block, strict=True)
            kind, values = schema.field("vector").type, pa.array(np.concatenate(vectors))
            arrays = [*map(pa.array, columns), pa.FixedSizeListArray.from_arrays(values, type=kind)]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    return batches()


def write_occurrences(
    embedder: Embedder,
    texts: Iterable[str],
    path: str | os.PathLike[str],
    *,
    layers: Layers | str = "average",
    words: Iterable[str] | None = None,
) -> int:
    """Write `occurrence_batches` as a Parquet file, whole or not at all; return its rows."""
    batches = occurrence_batches(embedder, texts, layers=layers, words=words)
    num_rows = 0
    with (
        atomic_file(path) as temp_path,
        parquet.ParquetWriter(temp_path, _schema(embedder, layers), compression="zstd") as writer,
    ):
        for batch in batches:
            writer.write_batch(batch)
            num_rows += batch.num_rows
    return num_rows


def _occurrences(
    embedder: Embedder, texts: Iterable[str], layers: Layers | str, wanted: frozenset[str] | None
) -> Iterator[tuple[Any, ...]]:
    texts, read_ahead = itertools.tee(texts)
    stream = embedder.stream(_only_strings(read_ahead), layers=layers)
    for number, (text, (words, vectors, _)) in enumerate(zip(texts, stream, strict=True)):
        if wanted is not None and wanted.isdisjoint(words):
            continue
        offsets = align(words, text) or [(None, None)] * len(words)
        for position, (word, (start, end)) in enumerate(zip(words, offsets, strict=True)):
            if wanted is None or word in wanted:
                yield number, word, text, position, start, end, vectors[position]


def _only_strings(texts: Iterable[str]) -> Iterator[str]:
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"text {number} must be a string, got {type(text).__name__}.")
        yield text


def _schema(embedder: Embedder, layers: Layers | str) -> pa.Schema:
    fields = {
        "text": pa.int64(), "word": pa.string(), "sentence": pa.string(), "position": pa.int32(),
        "start": pa.int32(), "end": pa.int32(), "vector": pa.list_(pa.float32(), embedder.dim),
    }  # fmt: skip
    kind: FileKind = "occurrences of words"
    metadata = json.dumps({"kind": kind, **embedder.metadata(layers=layers)})
    return pa.schema(fields.items(), metadata={METADATA_KEY: metadata})
