"""A table with a row for every occurrence of a word, for vector stores (extra ``arrow``).

Columns: ``text`` (number of the text), ``word``, ``sentence`` (the text), ``position`` (of the word
in it), ``start`` and ``end`` (characters in it), ``vector``. FAISS, LanceDB, Qdrant, DuckDB and
pandas read it from Parquet or from memory.
"""

import itertools
import json
import os
from collections.abc import Iterable, Iterator

import numpy as np

from elmokit.embed.embedder import Embedder
from elmokit.errors import InputError, MissingExtraError
from elmokit.files.atomic import atomic_file
from elmokit.inference.results import Layers, check_one_layer
from elmokit.integrations.shared import words_and_vectors
from elmokit.text.alignment import align
from elmokit.text.given_sentences import check_is_list, check_words
from elmokit.text.normalization import normalize
from elmokit.weights.result_metadata import METADATA_KEY, FileKind

try:
    import pyarrow
    from pyarrow import parquet
except ImportError as error:
    raise MissingExtraError("pyarrow", extra="arrow") from error

DEFAULT_ROWS = 4096
"""Rows of a batch, and of a Parquet row group: 4 MB with vectors of 256."""


def occurrence_batches(
    embedder: Embedder,
    texts: Iterable[str],
    *,
    layers: Layers | str = "average",
    words: Iterable[str] | None = None,
    rows: int = DEFAULT_ROWS,
) -> Iterator[pyarrow.RecordBatch]:
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
    return _batches(occurrences, _schema(embedder, layers), rows)


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
) -> Iterator[tuple[object, ...]]:
    texts, read_ahead = itertools.tee(_only_strings(texts))
    pairs = words_and_vectors(embedder, read_ahead, layers=layers)
    for number, (text, (words, vectors)) in enumerate(zip(texts, pairs, strict=True)):
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


def _batches(
    occurrences: Iterator[tuple[object, ...]], schema: pyarrow.Schema, rows: int
) -> Iterator[pyarrow.RecordBatch]:
    while block := list(itertools.islice(occurrences, rows)):
        *columns, vectors = zip(*block, strict=True)
        values = pyarrow.array(np.concatenate(vectors))
        vector = pyarrow.FixedSizeListArray.from_arrays(values, type=schema.field("vector").type)
        yield pyarrow.RecordBatch.from_arrays([*map(pyarrow.array, columns), vector], schema=schema)


def _schema(embedder: Embedder, layers: Layers | str) -> pyarrow.Schema:
    fields = [
        ("text", pyarrow.int64()),
        ("word", pyarrow.string()),
        ("sentence", pyarrow.string()),
        ("position", pyarrow.int32()),
        ("start", pyarrow.int32()),
        ("end", pyarrow.int32()),
        ("vector", pyarrow.list_(pyarrow.float32(), embedder.dim)),
    ]
    kind: FileKind = "occurrences of words"
    metadata = json.dumps({"kind": kind, **embedder.metadata(layers=layers)})
    return pyarrow.schema(fields, metadata={METADATA_KEY: metadata})
