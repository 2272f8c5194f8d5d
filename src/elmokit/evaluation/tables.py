"""Tables with a header, such as those of experiments: their columns, and the text in them."""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from elmokit.corpus.readers import TextLine
from elmokit.errors import InputError, Location, printable, shown
from elmokit.evaluation.surprisal import TypedWord
from elmokit.files.lines import numbered_lines
from elmokit.files.sources import plain_suffix
from elmokit.files.text_records import CHOOSE, table_rows
from elmokit.shapes import Float, Int

TABLE_SUFFIXES = (".csv", ".tsv")
_SENTENCE_END = re.compile(r"[.?!…]['\"”’)]*$")
_PLACES = ("file", "line", "sentence", "index", "word", "start", "end")
"""Columns of surprisals that give way to those of the same name in a table."""


def table_records(path: Path) -> Iterator[tuple[Location, dict[str, str]]]:
    """Yield the rows of a table with a header by column: commas in ``.csv``, else tabs."""
    delimiter = "," if plain_suffix(path) == ".csv" else "\t"
    rows = table_rows(path, numbered_lines(path), delimiter)
    _, header = next(rows, (0, []))
    for number, row in rows:
        location = Location(path=path, line=number)
        if len(row) != len(header):
            raise location.error(f"{len(row)} columns, but the header has {len(header)}.")
        yield location, dict(zip(header, row, strict=True))


class Table:
    """The columns of a table in memory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        records = list(table_records(path))
        if not records:
            raise InputError(f"{path} has no rows below a header.")
        self.lines = [location.line or 0 for location, _ in records]
        self.rows = [row for _, row in records]
        self.header = list(self.rows[0])

    def __getitem__(self, name: str) -> list[str]:
        if name not in self.header:
            columns = ", ".join(map(shown, self.header))
            raise InputError(f"{self.path} has no column {shown(name)}; it has {columns}. {CHOOSE}")
        return [row[name] for row in self.rows]

    def numbers(self, name: str) -> Float[np.ndarray, " N"]:
        """Return a column as numbers, NaN where it is empty or NA."""
        values = np.full(len(self.rows), np.nan)
        for row, text in enumerate(self[name]):
            try:
                if text.strip() not in ("", "NA", "NaN", "nan"):
                    values[row] = float(text)
            except ValueError as error:
                line = f"{self.path}, line {self.lines[row]}"
                raise InputError(
                    f"{line}: `{name}` must be a number, got {shown(text)}."
                ) from error
        return values

    def places(self, name: str, *, first: int) -> Int[np.ndarray, " N"]:
        """Return a column of places, counted from ``first``, counted from 0."""
        places = self.numbers(name) - first
        if np.isnan(places).any():
            line = self.lines[int(np.isnan(places).argmax())]
            raise InputError(f"{self.path}, line {line}: `{name}` is missing.")
        return places.astype(np.int64)


def sentences_of_items(
    items: Sequence[str], words: Sequence[str], places: Sequence[int]
) -> tuple[list[str], list[tuple[int, int]]]:
    """Put the words of every item together, in the order of their places, and cut sentences.

    Return the sentences, and for each row the number of its sentence and its index there.
    """
    of_item: dict[str, dict[int, str]] = {}
    for name, word, place in zip(items, words, places, strict=True):
        if len(word.split()) != 1:
            raise InputError(f"Item {shown(name)}, place {place}: {shown(word)} is not one word.")
        if of_item.setdefault(name, {}).setdefault(place, word) != word:
            raise InputError(f"Item {shown(name)} has two words at the same place: {place}.")
    sentences: list[list[str]] = []
    place_of: dict[tuple[str, int], tuple[int, int]] = {}
    for name, parts in of_item.items():
        sentences.append([])
        for place in sorted(parts):
            if sentences[-1] and _SENTENCE_END.search(sentences[-1][-1]):
                sentences.append([])
            place_of[name, place] = (len(sentences) - 1, len(sentences[-1]))
            sentences[-1].append(parts[place].strip())
    located = [place_of[name, place] for name, place in zip(items, places, strict=True)]
    return [" ".join(sentence) for sentence in sentences], located


class TableText:
    """Text in a column of tables, and the other columns, which go with what is scored.

    With ``item_column``, a row has a typed word, and rows of the same item are one text.
    """

    def __init__(
        self, paths: Sequence[Path], text_column: str, item_column: str | None = None
    ) -> None:
        tables = [Table(path) for path in paths]
        self._texts = [(table.path, table.lines, table[text_column]) for table in tables]
        columns = dict.fromkeys(name for table in tables for name in table.header)
        if item_column is None:  # a word stays with its row
            del columns[text_column]
        self.columns = list(columns)
        self._rows = {
            (printable(table.path), line): row
            for table in tables
            for line, row in zip(table.lines, table.rows, strict=True)
        }
        self._located: list[tuple[int, int]] | None = None
        if item_column is not None:
            if len(tables) > 1:
                raise InputError(f"Words of items are in one table, got {len(tables)}.")
            sentences, self._located = sentences_of_items(
                tables[0][item_column], tables[0][text_column], range(len(self._rows))
            )
            self._texts = [(tables[0].path, list(range(1, len(sentences) + 1)), sentences)]

    def check(self, columns: Sequence[str]) -> list[str]:
        """Return the table's columns and those of ``columns`` that it has not itself."""
        computed = [name for name in columns if name not in _PLACES and name in self.columns]
        if computed:
            raise InputError(f"Column {shown(computed[0])} of the table is computed: rename it.")
        return [*self.columns, *(name for name in columns if name not in self.columns)]

    def lines(self) -> Iterator[TextLine]:
        for path, numbers, texts in self._texts:
            for number, text in zip(numbers, texts, strict=True):
                if text.strip():
                    yield TextLine(path, number, text)

    def joined(self, rows: Iterable[Any], columns: Sequence[str]) -> Iterator[SimpleNamespace]:
        """Yield scored rows with the other columns; of items, the table's rows in their order."""
        if self._located is None:
            for row in rows:
                values = {name: getattr(row, name) for name in columns}
                own = self._rows[row.file, row.line]  # another table may lack a column
                yield SimpleNamespace(**values | {key: own.get(key, "") for key in self.columns})
            return
        words: dict[tuple[int | None, int], TypedWord] = {
            (row.line, row.index): row for row in rows
        }
        for (place, own), located in zip(self._rows.items(), self._located, strict=True):
            file, line = place
            word = words.get((located[0] + 1, located[1]))
            if word is None or not word.num_tokens:
                raise InputError(f"{file}, line {line}: the tokenizer makes no token of this word.")
            values = {name: getattr(word, name) for name in columns}
            yield SimpleNamespace(**(values | {"file": file, "line": line} | own))
