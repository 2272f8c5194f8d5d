"""Tagged sentences in columns: one word a line, a blank line after a sentence.

The plain layouts of named entities: two or more columns, separated by tabs or spaces, tags in the
IOB schemes. `elmokit.tasks.formats.conllu` reads treebanks.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from elmokit.files.atomic import StrPath
from elmokit.files.lines import numbered_lines
from elmokit.files.location import Location, shown
from elmokit.tasks.formats.reading import ExampleReport, read_examples

TagCheck = Literal["raw", "iob1", "iob2"]

_COMMENT = re.compile(r"#+( |$)")
_IOB_TAG = re.compile(r"O|[BI]-(?P<type>\S+)")
_DOCUMENT_MARK = "-DOCSTART-"


@dataclass(frozen=True, kw_only=True, slots=True)
class TaggedSentence:
    """Words and one tag for each; none of the words is empty."""

    tokens: tuple[str, ...]
    tags: tuple[str, ...]
    comments: tuple[str, ...] = ()
    """Lines with ``#`` before the sentence, without the ``#``."""
    location: Location
    """Of the first word."""

    @property
    def text(self) -> str | None:
        """The sentence before it was tokenized, from the comment ``# text =``."""
        return self._comment("text")

    @property
    def name(self) -> str | None:
        """What the comment ``# sent_id =`` calls the sentence."""
        return self._comment("sent_id")

    def _comment(self, name: str) -> str | None:
        for comment in self.comments:
            key, equals, value = comment.partition("=")
            if equals and key.strip() == name:
                return value.strip()
        return None


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """The lines between two blank lines, comments aside."""

    rows: list[tuple[int, str]]
    comments: tuple[str, ...]

    def location(self, path: Path) -> Location:
        """Return where its first row stands."""
        return Location(path=path, line=self.rows[0][0])


def read_columns(
    path: StrPath,
    *,
    token_column: int = 0,
    tag_column: int = -1,
    separator: Literal["auto", "tab", "space"] = "auto",
    scheme: TagCheck = "iob2",
    allowed: Collection[str] | None = None,
    comments: bool = True,
    spaces: Literal["keep", "drop"] = "keep",
    report: ExampleReport | None = None,
) -> Iterator[TaggedSentence]:
    """Yield the sentences of a file with a word and its tag in columns.

    Args:
        path: The file, plain or compressed.
        token_column: From 0; negative ones count from the end.
        tag_column: The same for the tags.
        separator: Between columns; ``auto`` takes tabs if the first row has one. Several spaces
            are one, several tabs are not.
        scheme: ``iob2`` checks that every chunk begins with ``B-``; ``iob1``, in which a chunk
            begins with ``I-`` unless it follows one of its type, is turned into it; ``raw`` takes
            tags as they are.
        allowed: Types of chunks that may occur (``PER``, not ``B-PER``), or tags if ``raw``; any if
            none.
        comments: Whether ``#`` with a space behind it, before the first word of a sentence, begins
            a comment. It never does inside a sentence.
        spaces: What happens to rows that stand for a space between words (a token of spaces, or
            ``_`` in every column but the tag): ``drop`` leaves them out, and where a chunk began
            with one, the next word begins it.
        report: Counts what is read and skipped; a sentence with an empty token is skipped.

    Raises:
        FileNotFoundError: at once, if there is no such file.
        FormatError: while reading, for a row with more or fewer columns than the first row, an
            ill-formed or unknown tag, and a file without sentences.
    """
    allowed = None if allowed is None else frozenset(allowed)
    columns = (token_column, tag_column, separator)
    return read_examples(
        path,
        lambda path, report: _ColumnReader(
            path, report, *columns, scheme, allowed, comments, spaces
        ).sentences(),
        report,
    )


def check_iob(
    tag: str, tag_before: str, allowed: Collection[str] | None, location: Location
) -> None:
    """Check one tag of the scheme IOB2, in which every chunk begins with ``B-``.

    Raises:
        FormatError: if it is ill-formed, of an unknown type, or continues what did not begin.
    """
    _check_iob_form(tag, allowed, location)
    if tag.startswith("I-") and tag_before[2:] != tag[2:]:
        raise location.error(
            f"tag {tag!r} continues a chunk that did not begin: the tag before is {tag_before!r}. "
            f"A chunk begins with 'B-{tag[2:]}' (IOB2); if this file is IOB1, say so."
        )


def _check_iob_form(tag: str, allowed: Collection[str] | None, location: Location) -> None:
    match = _IOB_TAG.fullmatch(tag)
    if match is None:
        raise location.error(
            f"ill-formed tag {shown(tag)}; allowed are O, B-TYPE and I-TYPE, in the last column "
            f"(from Python: `tag_column`, `scheme` of `read_columns`)."
        )
    kind = match["type"]
    if kind is not None and allowed is not None and kind not in allowed:
        raise location.error(
            f"tag {shown(tag)} has an unknown type; allowed: {', '.join(sorted(allowed))}."
        )


def blocks(path: Path, *, comments: bool) -> Iterator[Block]:
    """Yield what stands between blank lines, if there is a row in it."""
    rows: list[tuple[int, str]] = []
    found_comments: list[str] = []
    for number, line in numbered_lines(path):
        if not line.strip(" \t"):
            if rows:
                yield Block(rows=rows, comments=tuple(found_comments))
            rows, found_comments = [], []
        elif comments and not rows and _COMMENT.match(line):
            found_comments.append(line.lstrip("#").strip())
        else:
            rows.append((number, line))
    if rows:
        yield Block(rows=rows, comments=tuple(found_comments))


@dataclass
class _ColumnReader:
    """Reads one file of columns; see `read_columns` for the arguments."""

    path: Path
    report: ExampleReport
    token_column: int
    tag_column: int
    separator: Literal["auto", "tab", "space"]
    scheme: TagCheck
    allowed: Collection[str] | None
    comments: bool
    spaces: Literal["keep", "drop"]
    num_columns: int | None = None  # of the first row

    def sentences(self) -> Iterator[TaggedSentence]:
        for block in blocks(self.path, comments=self.comments):
            rows = [row for row in block.rows if not row[1].startswith(_DOCUMENT_MARK)]
            sentence = self._sentence(Block(rows=rows, comments=block.comments)) if rows else None
            if sentence is not None:
                yield sentence

    def _sentence(self, block: Block) -> TaggedSentence | None:
        tokens: list[str] = []
        tags: list[str] = []
        has_empty_token = False
        tag_before = "O"  # of the row before, be it a space
        begin_lost = False
        for number, line in block.rows:
            location = Location(path=self.path, line=number)
            fields = self._split(line, location)
            token, tag = fields[self.token_column], fields[self.tag_column]
            tag = self._check_tag(tag, tag_before, location)
            tag_before = tag
            if self.spaces == "drop" and self._is_space(fields):
                begin_lost = begin_lost or tag.startswith("B-")
                continue
            if begin_lost and tag.startswith("I-") and self.scheme != "raw":
                tag = f"B-{tag[2:]}"
                self.report.repaired["tag_moved"] += 1
            begin_lost = False
            has_empty_token = has_empty_token or not token
            tokens.append(token)
            tags.append(tag)
        if has_empty_token or not tokens:
            reason = "empty_token" if has_empty_token else "empty_sentence"
            self.report.skip(reason, block.location(self.path))
            return None
        return TaggedSentence(
            tokens=tuple(tokens),
            tags=tuple(tags),
            comments=block.comments,
            location=block.location(self.path),
        )

    def _split(self, line: str, location: Location) -> list[str]:
        if self.separator == "auto":
            self.separator = "tab" if "\t" in line else "space"
        if self.separator == "tab":
            fields = line.split("\t")
        else:
            fields = [value for value in re.split(r"[ \t]+", line) if value]
        if self.num_columns is None:
            self._check_columns(len(fields), location)
        if len(fields) != self.num_columns:
            raise location.error(
                f"{len(fields)} columns, but the first row has {self.num_columns}. Is a column "
                f"missing, or are columns separated by another character than "
                f"{'a tab' if self.separator == 'tab' else 'spaces'}?"
            )
        return fields

    def _check_columns(self, num_columns: int, location: Location) -> None:
        if num_columns == 1:
            raise location.error(
                "only one column, but a word and its tag are needed, separated by a tab or spaces."
            )
        for column in (self.token_column, self.tag_column):
            if not -num_columns <= column < num_columns:
                raise location.error(
                    f"no column {column}: the row has {num_columns}, counted from 0. Choose "
                    f"another one, or another separator."
                )
        if self.token_column % num_columns == self.tag_column % num_columns:
            raise location.error(
                f"words and tags cannot both stand in column {self.token_column % num_columns}: "
                f"the row has {num_columns} columns. Choose others, or another separator."
            )
        self.num_columns = num_columns

    def _check_tag(self, tag: str, tag_before: str, location: Location) -> str:
        """Return the tag, in IOB2 where it is one of a chunk."""
        if self.scheme == "raw":
            if not tag.strip():
                raise location.error("the tag is empty.")
            if self.allowed is not None and tag not in self.allowed:
                raise location.error(
                    f"unknown tag {shown(tag)}; allowed: {', '.join(sorted(self.allowed))}."
                )
        elif self.scheme == "iob2":
            check_iob(tag, tag_before, self.allowed, location)
        else:
            _check_iob_form(tag, self.allowed, location)
            if tag.startswith("I-") and tag_before[2:] != tag[2:]:
                return f"B-{tag[2:]}"
        return tag

    def _is_space(self, fields: list[str]) -> bool:
        token = fields[self.token_column]
        if token and token.isspace():
            return True
        tag_column = self.tag_column % len(fields)
        others = [value for column, value in enumerate(fields) if column != tag_column]
        return len(others) > 1 and all(value == "_" for value in others)
