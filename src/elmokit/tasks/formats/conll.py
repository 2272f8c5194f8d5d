"""Tagged sentences in columns: one word per line, a blank line after each sentence.

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
from elmokit.files.location import Location, counted, shown
from elmokit.metrics.span_f1 import convert_tags
from elmokit.tasks.formats.reading import ExampleReport, read_examples

ColumnScheme = Literal["iob1", "iob2", "bioul"]
"""``bioul`` includes IOBES, which has E for L and S for U."""
Block = list[tuple[int, str]]
"""Numbered lines."""

_COMMENT = re.compile(r"#+( |$)")
_IOB_TAG = re.compile(r"O|[BI]-\S+")
_TAG = re.compile(r"O|[BILUES]-\S+")
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
    scheme: ColumnScheme = "iob2",
    spaces: Literal["keep", "drop"] = "keep",
    report: ExampleReport | None = None,
) -> Iterator[TaggedSentence]:
    """Yield the sentences of a file with words in the first column and tags in the last.

    The first row decides whether columns are separated by tabs or by runs of spaces. ``# ...`` is a
    comment before a sentence, but not inside one, unless it has as many columns as other rows and
    ends with a tag. Sentences with an empty token are skipped.

    Tags of ``scheme`` become IOB2, which is checked. ``spaces="drop"`` leaves out rows
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
    _check_form(tag, _IOB_TAG, "O, B-TYPE and I-TYPE", location)
    if tag.startswith("I-") and tag_before[2:] != tag[2:]:
        raise location.error(
            f"tag {tag!r} continues a chunk that did not begin; the tag before is {tag_before!r}. "
            f"In IOB2 a chunk begins with 'B-{tag[2:]}'."
        )


def _check_form(tag: str, form: re.Pattern[str], allowed: str, location: Location) -> None:
    if not form.fullmatch(tag):
        raise location.error(f"ill-formed tag {shown(tag)}; allowed are {allowed}, last in a row.")


def find_scheme(path: Path) -> ColumnScheme:
    """Tell the scheme of a file.

    It is ``bioul`` if prefixes that only this scheme has are as frequent as B, ``iob1`` if more
    chunks begin with I than with B. What can be read only once, such as standard input or a pipe,
    is taken as IOB2.
    """
    prefixes: Counter[str] = Counter()
    begins: Counter[str] = Counter()
    for block in read_blocks(path) if path.is_file() else ():
        before = "O"
        for _, line in block:
            tag = line.split()[-1] if line.split() else "O"
            prefixes[tag[0] if _TAG.fullmatch(tag) else ""] += 1
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


def read_blocks(path: Path, is_comment: Callable[[str], bool] = is_comment) -> Iterator[Block]:
    """Yield the numbered rows between blank lines, without comments."""
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
    scheme: ColumnScheme
    spaces: Literal["keep", "drop"]
    has_tabs: bool | None = None  # None until the first row is read
    num_columns: int = 0  # of the first row

    def sentences(self) -> Iterator[TaggedSentence]:
        for block in read_blocks(self.path, lambda line: False):
            rows = self._rows(block)
            sentence = self._sentence(rows) if rows else None
            if sentence is not None:
                yield sentence

    def _rows(self, block: Block) -> Block:
        """Return the rows of a block, without marks of documents and comments before the first.

        A row of the word ``#`` has as many columns as others, the last of them a tag.
        """
        rows = [row for row in block if not row[1].startswith(DOCUMENT_MARK)]
        others = (line for _, line in rows if not is_comment(line))
        first = next(others, "")
        width = self.num_columns or len(first.split("\t" if "\t" in first else None))

        def is_row(line: str) -> bool:
            fields = line.split()
            is_word = len(fields) == width > 1 and _TAG.fullmatch(fields[-1])
            return not is_comment(line) or bool(is_word)

        return list(itertools.dropwhile(lambda row: not is_row(row[1]), rows))

    def _sentence(self, rows: Block) -> TaggedSentence | None:
        tokens: list[str] = []
        tags: list[str] = []
        has_empty_token = False
        begin_lost = False
        locations = [Location(path=self.path, line=number) for number, _ in rows]
        split = [self._split(line, at) for (_, line), at in zip(rows, locations, strict=True)]
        for fields, tag in zip(split, self._tags(split, locations), strict=True):
            token = fields[0]
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
                f"{counted(len(fields), 'column')}, but the first row has {self.num_columns}. Is a "
                f"column missing, or is the separator not {'a tab' if self.has_tabs else 'spaces'}?"
            )
        return fields

    def _tags(self, rows: Sequence[Sequence[str]], locations: Sequence[Location]) -> list[str]:
        """Return the tags of the rows, as IOB2."""
        tags = [fields[-1] for fields in rows]
        if self.scheme == "iob2":
            for before, tag, location in zip(["O", *tags], tags, locations, strict=False):
                check_iob(tag, before, location)
            return tags
        for tag, location in zip(tags, locations, strict=True):
            if self.scheme == "iob1":
                _check_form(tag, _IOB_TAG, "O, B-TYPE and I-TYPE", location)
            else:
                _check_form(tag, _TAG, "O, and B, I, L, U, E or S with a type", location)
        return convert_tags(tags, scheme="iob2")


def _is_space(fields: list[str]) -> bool:
    only_underscores = len(fields) > 2 and set(fields[:-1]) == {"_"}
    return fields[0].isspace() or only_underscores
