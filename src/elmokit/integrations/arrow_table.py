"""Vectors of texts as columns of Arrow tables (``arrow``).

The columns are those of `elmokit.embed.formats.parquet`: ``tokens``, and one per layer with a list
of vectors.
"""

from elmokit.embed.embedder import Embedder
from elmokit.embed.formats.parquet import pa, record_batch, schema_of
from elmokit.embed.formats.rows import Row
from elmokit.embed.numbered_lines import OwnLines
from elmokit.embed.options import EmbedOptions
from elmokit.errors import InputError
from elmokit.integrations.shared import AnyModel
from elmokit.text.given_sentences import check_text


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
            Row(number, None, line.words, line.vectors)
            for number, line in enumerate(self._lines.stream(texts))
        ]
        added = record_batch(rows, self._all_columns)
        for name in self.schema.names:
            table = table.append_column(self.schema.field(name), added.column(name))
        return table
