"""Tagged sentences in columns: one word or character per line, a blank line after each sentence.

`read_blocks` reads the rows of every format in columns, also for the modules `conllu` (treebanks)
and `ontonotes` (coreference).
"""

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from elmokit.files.atomic import StrPath
from elmokit.files.lines import numbered_lines
from elmokit.metrics.span_f1 import Span, convert_tags, read_spans, write_tags
from elmokit.tasks.formats.reading import Columns, ExampleReport, read_examples
from elmokit.text.alignment import Offsets, align
from elmokit.text.given_sentences import Tokenize
from elmokit.wording import Location, shown

DOCUMENT_MARK = "-DOCSTART-"
_INDEX = re.compile(r"(?:[0-9]+[-.:])*[0-9]+")  # 7; also 3-4, 8.1 and 2-7
_TAG = re.compile(r"O|[BILUES]-(?!O$)\S+")  # a type O may be meant as "outside of spans"


class Row(NamedTuple):
    """A line of a file in columns, which are separated by tabs, or by spaces if it has no tab."""

    location: Location
    fields: list[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class TaggedSentence:
    """Words, none of them empty, and one tag for each."""

    tokens: tuple[str, ...]
    tags: tuple[str, ...]
    location: Location | None = None
    """Of the first word, in a file."""
    text: str | None = None
    """As it was written, if that is known."""


def is_comment(line: str) -> bool:
    """Tell whether a line before a sentence may be a comment: ``#`` or ``##`` and a space."""
    return re.match(r"#+(\s|$)", line) is not None


def read_blocks(
    path: Path, is_comment: Callable[[str], bool] = lambda _: False
) -> Iterator[list[Row]]:
    """Yield the rows between blank lines, without comments before the first row."""
    rows: list[Row] = []
    for number, line in numbered_lines(path):
        if not line.strip(" \t"):
            if rows:
                yield rows
            rows = []
        elif rows or not is_comment(line):
            # Not `str.split()`, which also splits at spaces that are part of a word.
            fields = line.split("\t") if "\t" in line else list(filter(None, line.split(" ")))
            rows.append(Row(Location(path=path, line=number), fields))
    if rows:
        yield rows


def read_columns(
    path: StrPath, *, columns: Columns | None = None, spaces: Literal["keep", "drop"] = "keep"
) -> Iterator[TaggedSentence]:
    """Yield the sentences of a file, by default with words in the first column, tags in the last.

    ``# ...`` is a comment before a sentence, but not inside one, unless it has as many columns as
    other rows and ends with a tag. Sentences with an empty token are skipped.

    Tags of any scheme become IOB2 (`to_iob2`). ``spaces="drop"`` leaves out rows for spaces between
    words (a token of spaces, or ``_`` in every column but the tag); if a chunk began there, it
    begins at the next word.
    """

    def sentences(path: Path, report: ExampleReport) -> Iterator[TaggedSentence]:
        reader = _ColumnReader(path, columns or Columns())
        for rows in reader.rows():
            location = rows[0].location
            if spaces == "drop":
                rows = [row for row in rows if not reader.is_space(row)]
            words = [row.fields[reader.word] for row in rows]
            if words and all(words):
                tags = [row.fields[reader.tag] for row in rows]
                tags = to_iob2(tags, [row.location for row in rows], report)
                yield TaggedSentence(tokens=tuple(words), tags=tuple(tags), location=location)
            else:
                report.skip("empty_token" if words else "empty_sentence", location)
        reader.check_contents()

    return read_examples(path, sentences)


def to_iob2(tags: Sequence[str], locations: Iterable[Location], report: ExampleReport) -> list[str]:
    """Return tags of any scheme (IOB1, IOB2, BIOUL, IOBES) as IOB2, read as conlleval reads them.

    Chunks that begin with I are counted as repaired: in IOB2 a B is missing there.
    """
    for tag, location in zip(tags, locations, strict=False):
        if not _TAG.fullmatch(tag):
            raise location.error(
                f"ill-formed tag {shown(tag)}; allowed are O, and B, I, L, U, E or S with a type "
                "other than O. Delete a row of names, or name the column: --columns tag=NUMBER."
            )
    legal = convert_tags(tags, scheme="iob2")
    pairs = zip(tags, legal, strict=True)
    report.repaired["chunk_begins_with_I"] += sum(a[0] == "I" and b[0] == "B" for a, b in pairs)
    return legal


class _ColumnReader:
    """Reads rows of a word and a tag, and remembers what the columns hold."""

    def __init__(self, path: Path, columns: Columns) -> None:
        self.path, self.columns = path, columns
        self.word = columns.word - 1
        self.tag = -1 if columns.tag is None else columns.tag - 1
        self._first: Row | None = None
        self._types: dict[int, set[str]] = {}  # of spans, by the columns with tags alone
        self._num_rows, self._only_numbers = 0, True

    def rows(self) -> Iterator[list[Row]]:
        """Yield the rows of each sentence, without marks of documents and comments before it."""
        for block in read_blocks(self.path):
            # Marks of documents stand between sentences, in old files without a blank line.
            rows = [row for row in block if not row.fields[0].startswith(DOCUMENT_MARK)]
            self._first = self._first or next(
                (row for row in rows if not is_comment(row.fields[0])), None
            )
            if self._first is None:
                continue
            rows = list(itertools.dropwhile(self._is_comment, rows))
            for row in rows:
                self._check_row(row, self._first)
            if rows:
                self._note(rows)
                yield rows

    def _is_comment(self, row: Row) -> bool:
        """Tell a comment from a row of the word ``#``, which has a tag and as many columns."""
        assert self._first is not None
        is_row = len(row.fields) == len(self._first.fields) > max(1, self.tag)
        return is_comment(row.fields[0]) and not (is_row and _TAG.fullmatch(row.fields[self.tag]))

    def _check_row(self, row: Row, first: Row) -> None:
        num_columns = len(first.fields)
        if len(row.fields) != num_columns or num_columns == 1:
            raise row.location.error(
                f"the row {shown(row.fields)} must have the {max(2, num_columns)} columns of the "
                "first row, a word and its tag among them, separated by tabs, or all by spaces."
            )
        if max(self.word, self.tag) >= num_columns or self.word == self.tag % num_columns:
            raise row.location.error(f"{num_columns} columns, but {self.columns} (--columns).")

    def is_space(self, row: Row) -> bool:
        """Tell a row for spaces between words."""
        others = row.fields.copy()
        del others[self.tag]
        return row.fields[self.word].isspace() or (len(others) > 1 and set(others) == {"_"})

    def _note(self, rows: list[Row]) -> None:
        if not self._num_rows:
            self._types = {at: set() for at in range(len(rows[0].fields)) if at != self.word}
        for at in list(self._types):
            tags = [row.fields[at] for row in rows]
            if all(map(_TAG.fullmatch, tags)):
                self._types[at].update(tag[2:] for tag in tags if tag != "O")
            else:
                del self._types[at]
        self._num_rows += len(rows)
        words = (row.fields[self.word] for row in rows)
        self._only_numbers = self._only_numbers and all(map(_INDEX.fullmatch, words))

    def check_contents(self) -> None:
        """Refuse words that only count, and a guess between columns with tags of the same types."""
        # With the wrong columns a model would learn to tag numbers, or inner spans, without a sign.
        tags = list(self._types)
        rivals = [at for at in tags if self._types[at] & self._types[tags[-1]]]
        if self._only_numbers and self._num_rows > 1:
            fault = f"column {self.word + 1} has no words, only numbers"
        elif self.columns.tag is None and len(rivals) > 1:
            numbers = " and ".join(str(at + 1) for at in rivals)
            fault = f"columns {numbers} have tags with the same types"
        else:
            return
        assert self._first is not None
        raise self._first.location.error(
            f"{fault}. The row is {shown(self._first.fields)}. Name the columns with the words and "
            "with the tags to read, counted from 1, such as --columns word=2,tag=3."
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class TaggedCharacters(TaggedSentence):
    """A text in tokens of a tokenizer, with tags of tokens and of characters, both IOB2.

    Tokens are tagged where they hold a character of a span, so their spans may be longer.
    """

    offsets: Offsets
    """Of the tokens, in characters of the text."""
    character_tags: tuple[str, ...]


def read_characters(
    path: StrPath, tokenize: Tokenize, columns: Columns | None = None
) -> Iterator[TaggedCharacters]:
    """Yield the texts of a file with one character and its IOB2 tag per row, spaces included."""
    return (_tokenized(text, tokenize) for text in read_columns(path, columns=columns))


def _tokenized(characters: TaggedSentence, tokenize: Tokenize) -> TaggedCharacters:
    begin = characters.location
    assert begin is not None  # it was read from a file
    longest = max(characters.tokens, key=len)
    if len(longest) > 1:
        raise begin.error(
            f"{shown(longest)} is not one character: with units=characters each row has one, "
            "spaces included, and its tag; only models of units=words read rows of words."
        )
    text = "".join(characters.tokens)
    tokens = tuple(tokenize(text))
    offsets = align(tokens, text)
    if offsets is None:
        raise begin.error(f"the tokenizer's words cannot be found in {shown(text)}.")
    spans = spans_of_tokens(read_spans(characters.tags), offsets)
    return TaggedCharacters(
        tokens=tokens, tags=tuple(write_tags(spans, len(tokens), scheme="iob2")), text=text,
        offsets=offsets, character_tags=characters.tags,
    )  # fmt: skip


def spans_of_tokens(spans: list[Span], offsets: Offsets) -> list[Span]:
    """Return the tokens that hold a character of each span; each token is in one span at most.

    The spans do not overlap. One all of whose tokens are in an earlier one is left out.
    """
    result: list[Span] = []
    for kind, start, end in sorted(spans, key=lambda span: span[1:]):
        after = result[-1][2] if result else 0
        holding = [
            token
            for token, (first, last) in enumerate(offsets)
            if token >= after and max(first, start) < min(last, end)
        ]
        if holding:
            result.append((kind, holding[0], holding[-1] + 1))
    return result


def spans_of_characters(spans: list[Span], offsets: Offsets) -> list[Span]:
    """Return the characters of each span of tokens.

    Of spans that share characters, the first one has them.
    """
    result: list[Span] = []
    for kind, start, end in spans:
        first, last = offsets[start][0], offsets[end - 1][1]
        first = max(first, result[-1][2] if result else 0)
        if first < last:
            result.append((kind, first, last))
    return result
