"""Vectors as columns of Arrow tables: what Ray Data and Spark call (extra ``arrow``).

The columns are those of `elmokit.embed.formats.parquet`: ``tokens``, and one per layer with a list
of vectors.
"""

from collections.abc import Iterable, Iterator
from os import PathLike

from elmokit.embed.embedder import Embedder
from elmokit.embed.formats.block import Block
from elmokit.embed.line_embedder import OwnLines
from elmokit.embed.options import EmbedOptions
from elmokit.embed.pooling import SIF
from elmokit.errors import InputError, MissingExtraError
from elmokit.text.given_sentences import check_text
from elmokit.weights.model_dir import PretrainedBiLM

try:
    import pyarrow as pa
except ImportError as error:
    raise MissingExtraError("pyarrow", extra="arrow") from error

from elmokit.embed.formats.parquet import record_batch, schema_of


class TableEmbedder:
    """Add the vectors of a text column to tables: a callable for engines that start it anywhere.

    Args:
        model: As for `Embedder.load`; each worker must find it.
        column: The texts, one sentence each; null is an empty sentence.
        options: Layers, state policy, dtype and tokenizer; not ``carry`` and
            not SIF, because tables are split; nor what is for files: shard, resume, overwrite.
        precision, device, threads: As for `Embedder.load`.
    """

    def __init__(
        self,
        model: str | PathLike[str] | PretrainedBiLM | None = None,
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
        if options.pool == SIF:
            raise InputError('pool="sif" needs all of a text; tables are parts of one.')
        if options.state == "carry":
            raise InputError('state="carry" reads one text in order; tables come in any order.')
        if options.shard != (0, 1) or options.resume or options.overwrite:
            raise InputError(
                "`shard`, `resume` and `overwrite` are for files; the engine splits, repeats and "
                "writes tables. Leave them out."
            )
        self.column, self._lines = column, OwnLines(embedder, options)
        self.schema = schema_of(self._lines.metadata()).remove(0)
        """The columns that are added."""

    def __call__(self, table: pa.Table) -> pa.Table:
        """Return a table with the columns added."""
        if self.column not in table.column_names:
            raise InputError(
                f"There is no column {self.column!r}; the table has "
                f"{', '.join(table.column_names)}. Name the column with the texts."
            )
        if taken := [name for name in self.schema.names if name in table.column_names]:
            raise InputError(
                f"The table has {', '.join(taken)} already, where the vectors would go. Rename or "
                "drop them."
            )
        kind = table.column(self.column).type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        if str(kind) not in ("string", "large_string", "string_view", "null"):
            raise InputError(f"The column {self.column!r} must hold strings, got {kind}.")
        texts = ["" if text is None else text for text in table.column(self.column).to_pylist()]
        for number, text in enumerate(texts):
            check_text(text, where=f"row {number} of the column {self.column!r}")
        lines = list(self._lines.stream(texts))
        words, vectors = [line.words for line in lines], [line.vectors for line in lines]
        block = Block(list(range(len(lines))), [None] * len(lines), [*words], vectors)
        added = record_batch(block, schema_of(self._lines.metadata()))
        for name in self.schema.names:
            table = table.append_column(self.schema.field(name), added.column(name))
        return table

    def batches(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Do the same with a stream of record batches, as Spark's ``mapInArrow`` gives them."""
        for batch in batches:
            yield from self(pa.Table.from_batches([batch])).to_batches()
