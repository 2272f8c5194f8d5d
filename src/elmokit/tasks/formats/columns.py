"""Which columns of a file hold its words and tags, and whether the contents agree."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from elmokit.errors import ConfigError
from elmokit.field_checks import check_ranges
from elmokit.files.location import Location, shown

TAG = re.compile(r"O|[BILUES]-(?!O$)\S+")
"""Of any scheme. A type O is refused: perhaps what is meant is outside of spans."""
_INDEX = re.compile(r"(?:[0-9]+[-.:])*([0-9]{1,9})")  # 7; also 3-4, 8.1 and 2-7
_MAX_COLUMNS = 1_000


@dataclass(frozen=True, kw_only=True)
class Columns:
    """The columns of a file with a word and its tag in each row, counted from 1."""

    word: int = 1
    tag: int | None = None
    """None: the last one."""

    def __post_init__(self) -> None:
        check_ranges(self, word=(1, _MAX_COLUMNS), tag=(1, _MAX_COLUMNS))
        if self.word == self.tag:
            raise ConfigError(f"`word` and `tag` must be different columns, got {self.word} twice")


class ColumnContents:
    """What the columns of a file hold, seen sentence by sentence.

    Read with the wrong columns, a file of indices or of nested spans looks like any other: nothing
    would tell that the model learned to tag numbers, or the inner spans.
    """

    def __init__(self, columns: Columns, location: Location, first_row: Sequence[str]) -> None:
        self.columns, self.location, self.first_row = columns, location, first_row
        others = (column for column in range(1, len(first_row) + 1) if column != columns.word)
        self._types: dict[int, set[str]] = {column: set() for column in others}  # of tags only
        self._num_rows = self._num_counting = 0
        self._last_number: int | None = -1  # None once a word is no number

    def add(self, sentence: Sequence[Sequence[str]]) -> None:
        """Count in the rows of a sentence."""
        for column in list(self._types):
            tags = [row[column - 1] for row in sentence]
            if all(map(TAG.fullmatch, tags)):
                self._types[column].update(tag[2:] for tag in tags if tag != "O")
            else:
                del self._types[column]
        starts = {0, 1}
        for row in sentence:
            if self._last_number is None:
                return
            index = _INDEX.fullmatch(row[self.columns.word - 1])
            number = None if index is None else int(index[1])
            self._num_rows += 1
            self._num_counting += number in starts | {self._last_number + 1}
            self._last_number, starts = number, set()

    def check(self) -> None:
        """Refuse words that only count, and a guess between columns with tags of the same types."""
        word, tags = self.columns.word, list(self._types)
        rivals = [column for column in tags if self._types[column] & self._types[tags[-1]]]
        if self._last_number is not None and 1 < self._num_rows < 2 * self._num_counting:
            fault, word = f"column {word} has no words: it counts", word + 1
        elif self.columns.tag is None and len(rivals) > 1:
            fault = f"columns {' and '.join(map(str, rivals))} have tags with the same types"
        else:
            return
        tag = self.columns.tag or (rivals or tags)[0]
        mend = f", such as --columns word={word},tag={tag}" if word != tag else ""
        raise self.location.error(
            f"{fault}. The row is {shown(list(self.first_row))}. Name the columns with the words "
            f"and with the tags to read, counted from 1{mend}."
        )
