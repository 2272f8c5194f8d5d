"""Tagged sentences in columns: one word per line, a blank line after each sentence.

Two or more columns with tags of spans; `elmokit.tasks.formats.conllu` reads treebanks.
"""

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from elmokit.files.atomic import StrPath
from elmokit.files.lines import numbered_lines
from elmokit.files.location import Location, counted, shown
from elmokit.metrics.span_f1 import convert_tags
from elmokit.tasks.formats.columns import TAG, ColumnContents, Columns
from elmokit.tasks.formats.reading import ExampleReport, read_examples

ColumnScheme = Literal["iob1", "iob2", "bioul"]
"""``bioul`` includes IOBES, which has E for L and S for U."""
Block = list[tuple[int, str]]
"""Numbered lines."""
_Row = tuple[Location, list[str]]

_COMMENT = re.compile(r"#+( |$|\t(?!(.*\t)?(O|[BILUES]-\S+)$))")  # "#", tab, tag is a row
_IOB_TAG = re.compile(r"O|[BI]-(?!O$)\S+")
DOCUMENT_MARK = "-DOCSTART-"


@dataclass(frozen=True, kw_only=True, slots=True)
class TaggedSentence:
    """Words, none of them empty, and one tag for each."""

    tokens: tuple[str, ...]
    tags: tuple[str, ...]
    location: Location
    """Of the first word."""
    text: str | None = None
    """As it was written, if that is known."""


def read_columns(
    path: StrPath,
    *,
    columns: Columns | None = None,
    scheme: ColumnScheme = "iob2",
    spaces: Literal["keep", "drop"] = "keep",
    report: ExampleReport | None = None,
) -> Iterator[TaggedSentence]:
    """Yield the sentences of a file, by default with words in the first column, tags in the last.

    The first row decides whether columns are separated by tabs or by runs of spaces. ``# ...`` is a
    comment before a sentence, but not inside one, unless it has as many columns as other rows and
    ends with a tag. Sentences with an empty token are skipped.

    Tags of ``scheme`` become IOB2, which is checked. ``spaces="drop"`` leaves out rows
    for spaces between words (a token of spaces, or ``_`` in every column but the tag); if a chunk
    began there, it begins at the next word.

    Raises:
        FileNotFoundError: at once, if there is no such file.
        FormatError: while reading, for a row whose number of columns differs from the first row's,
            an ill-formed tag, or a file without sentences; at the end if the words only count the
            rows, or it is unclear which of several columns has the tags.
    """

    def sentences(path: Path, report: ExampleReport) -> Iterator[TaggedSentence]:
        return _ColumnReader(path, report, columns or Columns(), scheme, spaces).sentences()

    return read_examples(path, sentences, report)


def check_iob(tag: str, tag_before: str, location: Location) -> None:
    """Check one IOB2 tag against the one before it.

    Raises:
        FormatError: if it is ill-formed or continues a chunk that did not begin.
    """
    _check_form(tag, "iob2", location)
    if tag.startswith("I-") and tag_before[2:] != tag[2:]:
        raise location.error(
            f"tag {tag!r} continues a chunk that did not begin; the tag before is {tag_before!r}. "
            f"In IOB2 a chunk begins with 'B-{tag[2:]}'."
        )


def _check_form(tag: str, scheme: ColumnScheme, location: Location, advice: str = "") -> None:
    form, allowed = _IOB_TAG, "O, B-TYPE and I-TYPE"
    if scheme == "bioul":
        form, allowed = TAG, "O, and B, I, L, U, E or S with a type"
    if not form.fullmatch(tag):
        raise location.error(
            f"ill-formed tag {shown(tag)}; allowed are {allowed}, which must not be O.{advice}"
        )


def find_scheme(path: Path, columns: Columns | None = None) -> ColumnScheme:
    """Tell the scheme of a file.

    It is ``bioul`` if prefixes that only this scheme has are as frequent as B, ``iob1`` if more
    chunks begin with I than with B. What can be read only once, such as standard input or a pipe,
    is taken as IOB2.
    """
    prefixes: Counter[str] = Counter()
    begins: Counter[str] = Counter()
    reader = _ColumnReader(path, ExampleReport(), columns or Columns())
    for rows in reader.rows() if path.is_file() else ():
        before = "O"
        for _, fields in rows:
            tag = fields[reader.tag]
            prefixes[tag[0] if TAG.fullmatch(tag) else ""] += 1
            if tag.startswith("B-") or (tag.startswith("I-") and before[2:] != tag[2:]):
                begins[tag[0]] += 1
            before = tag
    only_bioul = sum(prefixes[prefix] for prefix in "LUES")
    if only_bioul and only_bioul >= prefixes["B"]:
        return "bioul"
    return "iob1" if begins["I"] > begins["B"] else "iob2"


def is_comment(line: str) -> bool:
    """Tell whether a line before a sentence is a comment."""
    return _COMMENT.match(line) is not None


def read_blocks(path: Path, is_comment: Callable[[str], bool]) -> Iterator[Block]:
    """Yield the numbered rows between blank lines, without comments before the first."""
    rows: Block = []
    for number, line in numbered_lines(path):
        if not line.strip(" \t"):
            if rows:
                yield rows
            rows = []
        elif rows or not is_comment(line):
            rows.append((number, line))
    if rows:
        yield rows


@dataclass
class _ColumnReader:
    path: Path
    report: ExampleReport
    columns: Columns
    scheme: ColumnScheme = "iob2"
    spaces: Literal["keep", "drop"] = "keep"
    has_tabs: bool = False  # in the first row
    num_columns: int = 0  # of the first row; 0 before it

    def __post_init__(self) -> None:
        self.word = self.columns.word - 1
        self.tag = -1 if self.columns.tag is None else self.columns.tag - 1

    def sentences(self) -> Iterator[TaggedSentence]:
        contents = None
        for rows in self.rows():
            contents = contents or ColumnContents(self.columns, *rows[0])
            sentence = self._sentence(rows, self._tags(rows, contents.location))
            contents.add([fields for _, fields in rows])
            if sentence is not None:
                yield sentence
        if contents is not None:
            contents.check()

    def rows(self) -> Iterator[list[_Row]]:
        """Yield the rows of each sentence, without marks of documents and comments before it."""
        for block in read_blocks(self.path, lambda line: False):
            lines = [line for line in block if not line[1].startswith(DOCUMENT_MARK)]
            if not self.num_columns:
                first = next((line for _, line in lines if not is_comment(line)), "")
                self.has_tabs = "\t" in first
                self.num_columns = len(self._fields(first))
            lines = itertools.dropwhile(lambda line: self._is_comment(line[1]), lines)
            if rows := [self._row(*line) for line in lines]:
                yield rows

    def _fields(self, line: str) -> list[str]:
        return line.split("\t") if self.has_tabs else re.findall(r"[^ \t]+", line)

    def _is_comment(self, line: str) -> bool:
        """Tell a comment from a row of the word ``#``, which has a tag and as many columns."""
        fields = self._fields(line)
        is_long = len(fields) == self.num_columns > max(1, self.tag)
        return is_comment(line) and not (is_long and TAG.fullmatch(fields[self.tag]))

    def _row(self, number: int, line: str) -> _Row:
        location, fields = Location(path=self.path, line=number), self._fields(line)
        if self.num_columns == 1:
            raise location.error(
                "only one column, but a word and its tag are needed, separated by a tab or spaces."
            )
        if len(fields) != self.num_columns:
            raise location.error(
                f"{counted(len(fields), 'column')}, but the first row has {self.num_columns}. Is a "
                f"column missing, or is the separator not {'a tab' if self.has_tabs else 'spaces'}?"
            )
        if max(self.word, self.tag) >= self.num_columns or self.word == self.tag % self.num_columns:
            raise location.error(
                f"{self.num_columns} columns, but {self.columns} are to be read (--columns); no "
                "`tag` means the last one."
            )
        return location, fields

    def _sentence(self, rows: list[_Row], tags: list[str]) -> TaggedSentence | None:
        words: list[str] = []
        word_tags: list[str] = []
        begin_lost = False
        for (_, fields), tag in zip(rows, tags, strict=True):
            if self.spaces == "drop" and self._is_space(fields):
                begin_lost = begin_lost or tag.startswith("B-")
                continue
            if begin_lost and tag.startswith("I-"):
                tag = f"B-{tag[2:]}"
                self.report.repaired["tag_moved"] += 1
            begin_lost = False
            words.append(fields[self.word])
            word_tags.append(tag)
        begin = rows[0][0]
        if not all(words) or not words:
            self.report.skip("empty_token" if words else "empty_sentence", begin)
            return None
        return TaggedSentence(tokens=tuple(words), tags=tuple(word_tags), location=begin)

    def _is_space(self, fields: list[str]) -> bool:
        others = fields.copy()
        del others[self.tag]
        return fields[self.word].isspace() or (len(others) > 1 and set(others) == {"_"})

    def _tags(self, rows: list[_Row], first: Location) -> list[str]:
        """Return the tags of the rows, as IOB2; ``first`` is the place of the file's first row."""
        tags = [fields[self.tag] for _, fields in rows]
        advice = " Delete a row of names. If the tags are in another column: --columns tag=NUMBER."
        for before, tag, (location, _) in zip(["O", *tags], tags, rows, strict=False):
            _check_form(tag, self.scheme, location, advice if location == first else "")
            if self.scheme == "iob2":
                check_iob(tag, before, location)
        return tags if self.scheme == "iob2" else convert_tags(tags, scheme="iob2")
