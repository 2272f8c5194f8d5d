"""Tables with a header, such as those of experiments: their columns, and the text in them."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from elmokit.errors import InputError, Location, shown
from elmokit.files.lines import numbered_lines
from elmokit.files.sources import plain_suffix
from elmokit.files.text_records import rows_by_column, table_rows
from elmokit.shapes import Float, Int

_SENTENCE_END = re.compile(r"[.?!…]['\"”’)]*$")


def table_records(path: Path) -> Iterator[tuple[Location, dict[str, str]]]:
    """Yield the rows of a table with a header by column: commas in ``.csv``, else tabs."""
    delimiter = "," if plain_suffix(path) == ".csv" else "\t"
    return rows_by_column(path, table_rows(path, numbered_lines(path), delimiter))


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
            raise InputError(
                f"{self.path} has no column {shown(name)}; it has {columns}. --measure, --word, "
                "--position, --item, --sentence and --frequency name columns."
            )
        return [row[name] for row in self.rows]

    def numbers(self, name: str) -> Float[np.ndarray, " N"]:
        """Return a column as numbers, NaN where it is empty, NA or a dot (SAS)."""
        values = np.full(len(self.rows), np.nan)
        for row, text in enumerate(self[name]):
            try:
                if text.strip() not in ("", "NA", "NaN", "nan", "."):
                    values[row] = float(text)
                if np.isinf(values[row]):
                    raise ValueError(text)
            except ValueError as error:
                line = f"{self.path}, line {self.lines[row]}"
                raise InputError(
                    f"{line}: `{name}` must be a number, got {shown(text)}."
                ) from error
        return values

    def places(self, name: str, *, first: int) -> Int[np.ndarray, " N"]:
        """Return a column of places, counted from ``first``, counted from 0."""
        places = self.numbers(name) - first
        if (is_wrong := places % 1 != 0).any():  # also NaN
            row = int(is_wrong.argmax())
            raise InputError(
                f"{self.path}, line {self.lines[row]}: `{name}` must be a whole number, got "
                f"{shown(self.rows[row][name])}."
            )
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
