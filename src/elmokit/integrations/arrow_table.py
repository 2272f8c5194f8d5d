"""Vectors as columns of Arrow tables: what Ray Data and Spark call (extra ``arrow``).

The columns are those of `elmokit.embed.formats.parquet`: ``tokens``, and one per layer with a list
of vectors.
"""

from collections.abc import Iterable, Iterator

from elmokit.embed.embedder import Embedder
from elmokit.embed.formats.block import Block
from elmokit.embed.line_embedder import OwnLines
from elmokit.embed.options import EmbedOptions
from elmokit.errors import InputError, MissingExtraError
from elmokit.integrations.shared import AnyModel
from elmokit.text.given_sentences import check_text

try:
    import pyarrow as pa
except ImportError as error:
    raise MissingExtraError("pyarrow", extra="arrow") from error

from elmokit.embed.formats.parquet import record_batch, schema_of


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
        self.schema = schema_of(self._lines.metadata()).remove(0)

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
