"""Add contextual vectors to a Spark data frame of texts: Parquet in, Parquet out.

    spark-submit recipes/spark_embed.py texts.parquet vectors.parquet
    spark-submit recipes/spark_embed.py s3a://bucket/texts s3a://bucket/vectors --column body

A row is a sentence. The result has the columns of the input, ``tokens``, and one column per layer
with a list of vectors. Every Python worker loads the model once for each partition, so partitions
should be large (some 100,000 words); Spark computes partitions of lost workers again. Needs
elmokit with the extra `arrow` on every machine, and the model under the same path, or a packaged
one. It uses ``mapInArrow``: ``mapInPandas`` would make a Python object of every vector.
"""

import argparse
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from elmokit.cli.output import exit_on_user_error
from elmokit.embed.options import EmbedOptions
from elmokit.integrations.arrow_table import TableEmbedder


def with_vectors(frame: Any, *, model: str | None, column: str, options: EmbedOptions) -> Any:
    """Return a Spark data frame with the columns of `TableEmbedder` added."""
    from pyspark.sql.pandas.types import from_arrow_schema

    settings = {"column": column, "options": options, "device": "cpu", "threads": 1}

    def embed(batches: Iterable[Any]) -> Iterator[Any]:
        for batch in TableEmbedder(model, **settings).batches(batches):
            yield batch.cast(_without_sizes(batch.schema))

    added = from_arrow_schema(_without_sizes(TableEmbedder(model, **settings).schema))
    schema = type(added)([*frame.schema.fields, *added.fields])
    return frame.mapInArrow(embed, schema)


def _without_sizes(schema: pa.Schema) -> pa.Schema:
    """Return a schema in which vectors are plain lists: Spark knows no lists of fixed size."""
    vectors = pa.list_(pa.list_(pa.float32()))
    is_layer = [
        pa.types.is_list(field.type) and pa.types.is_fixed_size_list(field.type.value_type)
        for field in schema
    ]
    return pa.schema([
        pa.field(field.name, vectors) if of_layer else field
        for field, of_layer in zip(schema, is_layer, strict=True)
    ])  # fmt: skip


def main() -> None:
    """Read, embed, write."""
    from pyspark.sql import SparkSession

    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("texts", help="Parquet that Spark can read")
    parser.add_argument("vectors", help="Parquet to write")
    parser.add_argument("--model", help="directory or name; default: en")
    parser.add_argument("--column", default="text", help="of the texts")
    parser.add_argument("--layers", default="average", choices=["all", "top", "average"])
    given = parser.parse_args()
    spark = SparkSession.builder.getOrCreate()
    options = EmbedOptions(layers=given.layers)
    frame = spark.read.parquet(given.texts)
    found = with_vectors(frame, model=given.model, column=given.column, options=options)
    found.write.parquet(given.vectors)


if __name__ == "__main__":
    with exit_on_user_error():
        main()
