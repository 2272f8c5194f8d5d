"""Tagged sentences in columns: one word or character per line, a blank line after each sentence.

Two or more columns with tags of spans; `elmokit.tasks.formats.conllu` reads treebanks.
"""

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from elmokit.files.atomic import StrPath
from elmokit.files.lines import numbered_lines
from elmokit.metrics.span_f1 import Span, TagScheme, convert_tags, read_spans, write_tags
from elmokit.tasks.formats.reading import Columns, ExampleReport, read_examples
from elmokit.text.alignment import Offsets, align
from elmokit.text.given_sentences import Tokenize
from elmokit.wording import Location, shown

Block = list[tuple[int, str]]
"""Numbered lines."""
Row = tuple[Location, list[str]]
"""The place and the fields of a word."""
DOCUMENT_MARK = "-DOCSTART-"

_INDEX = re.compile(r"(?:[0-9]+[-.:])*([0-9]{1,9})")  # 7; also 3-4, 8.1 and 2-7
_COMMENT = re.compile(r"#+( |$|\t(?!(.*\t)?(O|[BILUES]-\S+)$))")  # "#", tab, tag is a row
_TAG = re.compile(r"O|[BILUES]-(?!O$)\S+")
"""Of any scheme. A type O is refused: perhaps what is meant is outside of spans."""
_IOB_TAG = re.compile(r"O|[BI]-(?!O$)\S+")


@dataclass(frozen=True, kw_only=True, slots=True)
class TaggedSentence:
    """Words, none of them empty, and one tag for each."""

    tokens: tuple[str, ...]
    tags: tuple[str, ...]
    location: Location | None = None
    """Of the first word, in a file."""
    text: str | None = None
    """As it was written, if that is known."""


def read_columns(
    path: StrPath,
    *,
    columns: Columns | None = None,
    scheme: TagScheme = "iob2",
    spaces: Literal["keep", "drop"] = "keep",
) -> Iterator[TaggedSentence]:
    """Yield the sentences of a file, by default with words in the first column, tags in the last.

    The first row decides whether columns are separated by tabs or by runs of spaces. ``# ...`` is a
    comment before a sentence, but not inside one, unless it has as many columns as other rows and
    ends with a tag. Sentences with an empty token are skipped.

    Tags of ``scheme`` become IOB2, which is checked; ``bioul`` includes IOBES, which has E for L
    and S for U. ``spaces="drop"`` leaves out rows for spaces between words (a token of spaces, or
    ``_`` in every column but the tag); if a chunk began there, it begins at the next word.
    """

    def sentences(path: Path, report: ExampleReport) -> Iterator[TaggedSentence]:
        return _ColumnReader(path, columns or Columns()).sentences(scheme, spaces, report)

    return read_examples(path, sentences)


def check_iob(tag: str, tag_before: str, location: Location) -> None:
    """Check one IOB2 tag against the one before it."""
    _check_form(tag, "iob2", location)
    if tag.startswith("I-") and tag_before[2:] != tag[2:]:
        raise location.error(
            f"tag {tag!r} continues a chunk that did not begin; the tag before is {tag_before!r}. "
            f"In IOB2 a chunk begins with 'B-{tag[2:]}'."
        )


def _check_form(tag: str, scheme: TagScheme, location: Location, advice: str = "") -> None:
    form, allowed = _IOB_TAG, "O, B-TYPE and I-TYPE"
    if scheme == "bioul":
        form, allowed = _TAG, "O, and B, I, L, U, E or S with a type"
    if not form.fullmatch(tag):
        raise location.error(
            f"ill-formed tag {shown(tag)}; allowed are {allowed}, which must not be O.{advice}"
        )


def find_scheme(path: Path, columns: Columns | None = None) -> TagScheme:
    """Tell the scheme of a file.

    It is ``bioul`` if prefixes that only this scheme has are as frequent as B, ``iob1`` if more
    chunks begin with I than with B. What can be read only once, such as standard input or a pipe,
    is taken as IOB2.
    """
    prefixes: Counter[str] = Counter()
    begins: Counter[str] = Counter()
    reader = _ColumnReader(path, columns or Columns())
    for rows in reader.rows() if path.is_file() else ():
        tags = [fields[reader.tag] for _, fields in rows]
        prefixes.update(tag[0] for tag in tags if _TAG.fullmatch(tag))
        for before, tag in itertools.pairwise(("O", *tags)):
            if tag.startswith("B-") or (tag.startswith("I-") and before[2:] != tag[2:]):
                begins[tag[0]] += 1
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


class _ColumnReader:
    def __init__(self, path: Path, columns: Columns) -> None:
        self.path, self.columns = path, columns
        self.word = columns.word - 1
        self.tag = -1 if columns.tag is None else columns.tag - 1
        self.has_tabs, self.num_columns = False, 0  # of the first row

    def sentences(
        self, scheme: TagScheme, spaces: str, report: ExampleReport
    ) -> Iterator[TaggedSentence]:
        contents = None
        for rows in self.rows():
            contents = contents or _ColumnContents(self.columns, *rows[0])
            tags = self._tags(rows, scheme, contents.location)
            contents.add([fields for _, fields in rows])
            words = [fields[self.word] for _, fields in rows]
            if spaces == "drop":
                words, tags = self._without_spaces(rows, words, tags, report)
            if words and all(words):
                yield TaggedSentence(tokens=tuple(words), tags=tuple(tags), location=rows[0][0])
            else:
                report.skip("empty_token" if words else "empty_sentence", rows[0][0])
        if contents is not None:
            contents.check()

    def rows(self) -> Iterator[list[Row]]:
        """Yield the rows of each sentence, without marks of documents and comments before it."""
        for block in read_blocks(self.path, lambda line: False):
            # Marks of documents stand between sentences, in old files without a blank line.
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
        return is_comment(line) and not (is_long and _TAG.fullmatch(fields[self.tag]))

    def _row(self, number: int, line: str) -> Row:
        location, fields = Location(path=self.path, line=number), self._fields(line)
        if len(fields) != self.num_columns or self.num_columns == 1:
            raise location.error(
                f"the row {shown(fields)} must have the {max(2, self.num_columns)} columns of the "
                f"first row, a word and its tag among them, separated by "
                f"{'tabs' if self.has_tabs else 'tabs or spaces'}."
            )
        if max(self.word, self.tag) >= self.num_columns or self.word == self.tag % self.num_columns:
            raise location.error(
                f"{self.num_columns} columns, but {self.columns} are to be read (--columns); no "
                "`tag` means the last one."
            )
        return location, fields

    def _tags(self, rows: list[Row], scheme: TagScheme, first: Location) -> list[str]:
        """Return the tags of the rows, as IOB2; ``first`` is the place of the file's first row."""
        tags = [fields[self.tag] for _, fields in rows]
        advice = " Delete a row of names. If the tags are in another column: --columns tag=NUMBER."
        for before, tag, (location, _) in zip(["O", *tags], tags, rows, strict=False):
            _check_form(tag, scheme, location, advice if location == first else "")
            if scheme == "iob2":
                check_iob(tag, before, location)
        return tags if scheme == "iob2" else convert_tags(tags, scheme="iob2")

    def _without_spaces(
        self, rows: list[Row], words: list[str], tags: list[str], report: ExampleReport
    ) -> tuple[list[str], list[str]]:
        """Leave out rows for spaces; a chunk that began at one begins at the next word."""
        other_words, other_tags = [], []
        is_begin_lost = False
        for (_, fields), word, tag in zip(rows, words, tags, strict=True):
            if self._is_space(fields):
                is_begin_lost = is_begin_lost or tag.startswith("B-")
                continue
            if is_begin_lost and tag.startswith("I-"):
                tag = f"B-{tag[2:]}"
                report.repaired["tag_moved"] += 1
            is_begin_lost = False
            other_words.append(word)
            other_tags.append(tag)
        return other_words, other_tags

    def _is_space(self, fields: list[str]) -> bool:
        others = fields.copy()
        del others[self.tag]
        return fields[self.word].isspace() or (len(others) > 1 and set(others) == {"_"})


class _ColumnContents:
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
            if all(map(_TAG.fullmatch, tags)):
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
            f"{shown(longest)} is not one character. With units=characters the file must have one "
            "character and its tag per row, spaces included, as in KLUE-NER; only a model trained "
            "with units=words reads rows of words."
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
    ordered = sorted(spans, key=lambda span: span[1:])
    span_at = {at: number for number, span in enumerate(ordered) for at in range(*span[1:])}
    holding: list[list[int]] = [[] for _ in ordered]  # the tokens of each span
    for token, (first, last) in enumerate(offsets):
        for number in {span_at[at] for at in range(first, last) if at in span_at}:
            holding[number].append(token)
    result: list[Span] = []
    for (kind, _, _), tokens in zip(ordered, holding, strict=True):
        after = result[-1][2] if result else 0
        if own := [token for token in tokens if token >= after]:
            result.append((kind, own[0], own[-1] + 1))
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
