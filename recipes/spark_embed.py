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

from elmokit.embed.options import EmbedOptions
from elmokit.integrations.arrow_table import TableEmbedder


def with_vectors(frame: Any, *, model: str | None, column: str, options: EmbedOptions) -> Any:
    """Return a Spark data frame with the columns of `TableEmbedder` added."""
    from pyspark.sql.pandas.types import from_arrow_schema

    settings = {"column": column, "options": options, "device": "cpu", "threads": 1}

    def embed(batches: Iterable[Any]) -> Iterator[Any]:
        return TableEmbedder(model, **settings).batches(batches)

    added = from_arrow_schema(TableEmbedder(model, **settings).schema)
    schema = type(added)([*frame.schema.fields, *added.fields])
    return frame.mapInArrow(embed, schema)


def main() -> None:
    """Read, embed, write."""
    from pyspark.sql import SparkSession

    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("texts", help="Parquet that Spark can read")
    parser.add_argument("vectors", help="Parquet to write")
    parser.add_argument("--model", help="directory or name; default: en")
    parser.add_argument("--column", default="text", help="of the texts")
    parser.add_argument("--layers", default="average", choices=["all", "top", "average"])
    parser.add_argument("--dtype", default="float32", choices=["float32", "float16"])
    given = parser.parse_args()
    spark = SparkSession.builder.getOrCreate()
    options = EmbedOptions(layers=given.layers, dtype=given.dtype)
    frame = spark.read.parquet(given.texts)
    found = with_vectors(frame, model=given.model, column=given.column, options=options)
    found.write.parquet(given.vectors)


if __name__ == "__main__":
    main()
