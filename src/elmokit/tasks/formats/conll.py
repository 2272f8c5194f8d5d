"""Tagged sentences in columns: one word per line, a blank line after each sentence.

Two or more columns with IOB tags; `elmokit.tasks.formats.conllu` reads treebanks.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from elmokit.files.atomic import StrPath
from elmokit.files.lines import numbered_lines
from elmokit.files.location import Location, shown
from elmokit.tasks.formats.reading import ExampleReport, read_examples

TagCheck = Literal["iob1", "iob2"]
Block = list[tuple[int, str]]
"""Numbered lines."""

_COMMENT = re.compile(r"#+( |$)")
_IOB_TAG = re.compile(r"O|[BI]-\S+")
_DOCUMENT_MARK = "-DOCSTART-"


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
    scheme: TagCheck = "iob2",
    spaces: Literal["keep", "drop"] = "keep",
    report: ExampleReport | None = None,
) -> Iterator[TaggedSentence]:
    """Yield the sentences of a file with words in the first column and tags in the last.

    The first row decides whether columns are separated by tabs or by runs of spaces. ``# ...`` is a
    comment before a sentence, but not inside one. Sentences with an empty token are skipped.

    Tags must be IOB2; those of the scheme ``iob1`` are converted. ``spaces="drop"`` leaves out rows
    for spaces between words (a token of spaces, or ``_`` in every column but the tag); if a chunk
    began there, it begins at the next word.

    Raises:
        FileNotFoundError: at once, if there is no such file.
        FormatError: while reading, for a row whose number of columns differs from the first row's,
            an ill-formed tag, or a file without sentences.
    """
    return read_examples(
        path, lambda path, report: _ColumnReader(path, report, scheme, spaces).sentences(), report
    )


def check_iob(tag: str, tag_before: str, location: Location) -> None:
    """Check one IOB2 tag against the one before it.

    Raises:
        FormatError: if it is ill-formed or continues a chunk that did not begin.
    """
    _check_iob_form(tag, location)
    if tag.startswith("I-") and tag_before[2:] != tag[2:]:
        raise location.error(
            f"tag {tag!r} continues a chunk that did not begin; the tag before is {tag_before!r}. "
            f"In IOB2 a chunk begins with 'B-{tag[2:]}'; from Python, read_columns(scheme='iob1') "
            "reads IOB1."
        )


def _check_iob_form(tag: str, location: Location) -> None:
    if not _IOB_TAG.fullmatch(tag):
        raise location.error(
            f"ill-formed tag {shown(tag)}; allowed are O, B-TYPE and I-TYPE, in the last column."
        )


def read_blocks(path: Path) -> Iterator[Block]:
    """Yield the numbered rows between blank lines, without comments."""
    rows: Block = []
    for number, line in numbered_lines(path):
        if not line.strip(" \t"):
            if rows:
                yield rows
            rows = []
        elif rows or not _COMMENT.match(line):
            rows.append((number, line))
    if rows:
        yield rows


@dataclass
class _ColumnReader:
    path: Path
    report: ExampleReport
    scheme: TagCheck
    spaces: Literal["keep", "drop"]
    has_tabs: bool | None = None  # None until the first row is read
    num_columns: int = 0  # of the first row

    def sentences(self) -> Iterator[TaggedSentence]:
        for block in read_blocks(self.path):
            rows = [row for row in block if not row[1].startswith(_DOCUMENT_MARK)]
            sentence = self._sentence(rows) if rows else None
            if sentence is not None:
                yield sentence

    def _sentence(self, rows: Block) -> TaggedSentence | None:
        tokens: list[str] = []
        tags: list[str] = []
        has_empty_token = False
        tag_before = "O"  # of the previous row, dropped or not
        begin_lost = False
        for number, line in rows:
            location = Location(path=self.path, line=number)
            fields = self._split(line, location)
            token = fields[0]
            tag = tag_before = self._check_tag(fields[-1], tag_before, location)
            if self.spaces == "drop" and _is_space(fields):
                begin_lost = begin_lost or tag.startswith("B-")
                continue
            if begin_lost and tag.startswith("I-"):
                tag = f"B-{tag[2:]}"
                self.report.repaired["tag_moved"] += 1
            begin_lost = False
            has_empty_token = has_empty_token or not token
            tokens.append(token)
            tags.append(tag)
        begin = Location(path=self.path, line=rows[0][0])
        if has_empty_token or not tokens:
            self.report.skip("empty_token" if has_empty_token else "empty_sentence", begin)
            return None
        return TaggedSentence(tokens=tuple(tokens), tags=tuple(tags), location=begin)

    def _split(self, line: str, location: Location) -> list[str]:
        is_first = self.has_tabs is None
        if is_first:
            self.has_tabs = "\t" in line
        if self.has_tabs:
            fields = line.split("\t")
        else:
            fields = [value for value in re.split(r"[ \t]+", line) if value]
        if is_first:
            self.num_columns = len(fields)
        if self.num_columns == 1:
            raise location.error(
                "only one column, but a word and its tag are needed, separated by a tab or spaces."
            )
        if len(fields) != self.num_columns:
            raise location.error(
                f"{len(fields)} columns, but the first row has {self.num_columns}. Is a column "
                f"missing, or is the separator not {'a tab' if self.has_tabs else 'spaces'}?"
            )
        return fields

    def _check_tag(self, tag: str, tag_before: str, location: Location) -> str:
        """Return the tag in IOB2."""
        if self.scheme == "iob2":
            check_iob(tag, tag_before, location)
            return tag
        _check_iob_form(tag, location)
        begins = tag.startswith("I-") and tag_before[2:] != tag[2:]
        return f"B-{tag[2:]}" if begins else tag


def _is_space(fields: list[str]) -> bool:
    only_underscores = len(fields) > 2 and set(fields[:-1]) == {"_"}
    return fields[0].isspace() or only_underscores
