"""Documents with coreference in the columns of CoNLL-2012 (OntoNotes, LitBank, GUM).

``#begin document (NAME); part N`` and ``#end document`` delimit a document, blank lines end its
sentences. Column 4 is the word, column 10 the speaker, the last column the mentions: ``(3`` opens
one of cluster 3, ``3)`` closes the one opened last, ``(3)`` is a single word, ``|`` joins marks.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from elmokit.files.atomic import StrPath
from elmokit.tasks.formats.conll import Row, read_blocks
from elmokit.tasks.formats.reading import ExampleReport, read_examples
from elmokit.wording import Location, shown

Span = tuple[int, int]
Clusters = list[list[Span]]

_BEGIN = re.compile(r"#begin document \((?P<name>.*)\); *part +(?P<part>[0-9]{1,9}) *")
_END = "#end document"
_MARK = re.compile(r"(?P<opens>\()?(?P<cluster>[0-9]+)(?P<closes>\))?")
_WORD_NUMBER, _WORD, _SPEAKER = 2, 3, 9
_MIN_COLUMNS = 5
_NOTHING = ("", "-", "_", "*")


@dataclass(frozen=True, kw_only=True, slots=True)
class CorefDocument:
    """A text and its clusters of mentions; singletons are included if the data has them."""

    name: str
    part: int
    sentences: tuple[tuple[str, ...], ...]
    clusters: tuple[tuple[Span, ...], ...]
    """Mentions ``[start, end)`` in tokens of the document, in text order; clusters by the first."""
    speakers: tuple[str | None, ...] | None = None
    """Of each token; None if the file names no speaker."""
    genre: str | None = None
    """``bc`` of ``bc/cctv/00/cctv_0000``, ``fiction`` of ``GUM_fiction_beast``."""
    text: str | None = None  # as it was written, if that is known

    @property
    def tokens(self) -> tuple[str, ...]:
        return tuple(token for sentence in self.sentences for token in sentence)


def read_coreference(path: StrPath) -> Iterator[CorefDocument]:
    """Yield the documents, each part of one by itself; those without words are skipped."""
    return read_examples(path, _read)


def _read(path: Path, report: ExampleReport) -> Iterator[CorefDocument]:
    draft: _Draft | None = None
    for block in read_blocks(path):
        sentence: list[str] = []
        for row in block:
            line = " ".join(row.fields).rstrip()
            if draft is None:
                draft, sentence = _Draft(line, row.location), []
            elif line == _END:
                document = draft.finish()
                if document.tokens:
                    yield document
                else:
                    report.skip("empty_document", draft.location)
                draft = None
            else:
                if not sentence:
                    draft.sentences.append(sentence)
                draft.add_row(row, sentence)
    if draft is not None:
        raise draft.location.error(
            f"the document {draft.name!r} has no {_END!r}. Is the file truncated? Copy it again."
        )


class _Draft:
    """A document while its rows are read."""

    def __init__(self, line: str, location: Location) -> None:
        match = _BEGIN.fullmatch(line)
        if match is None:
            raise location.error(
                f"expected '#begin document (NAME); part N', got {shown(line)}. Every row must be "
                "in a document."
            )
        self.name, self.part, self.location = match["name"], int(match["part"]), location
        self.num_columns = 0  # of the current sentence
        self.sentences: list[list[str]] = []
        self.speakers: list[str | None] = []
        self.mentions: dict[str, list[Span]] = {}
        self.open_mentions: dict[str, list[tuple[int, Location]]] = {}

    def add_row(self, row: Row, sentence: list[str]) -> None:
        fields = row.fields
        if not sentence:
            self.num_columns = max(_MIN_COLUMNS, len(fields))
        is_whole = len(fields) == self.num_columns and fields[_WORD].strip()
        if not is_whole or fields[_WORD_NUMBER] != str(len(sentence)):
            raise row.location.error(
                f"expected word {len(sentence)} of a sentence of the document {self.name!r}: its "
                "number (from 0) in column 3, the word in column 4, the mentions in the last of "
                f"{self.num_columns} columns, got {shown(fields)}. Is there {_END!r}?"
            )
        sentence.append(fields[_WORD])
        has_speaker = len(fields) > _SPEAKER + 1 and fields[_SPEAKER] not in _NOTHING
        self.speakers.append(fields[_SPEAKER] if has_speaker else None)
        marks = fields[-1].strip()
        for mark in () if marks in _NOTHING else marks.split("|"):
            self._add_mark(mark, len(self.speakers) - 1, row.location)

    def _add_mark(self, mark: str, index: int, location: Location) -> None:
        match = _MARK.fullmatch(mark)
        opened = self.open_mentions.setdefault(match["cluster"], []) if match else []
        if match and match["opens"]:
            opened.append((index, location))
        if match is None or not opened or not (match["opens"] or match["closes"]):
            raise location.error(
                f"{shown(mark)} in the last column neither opens nor closes a mention; allowed: (3 "
                "or (3), joined by |, and 3) where (3 is open."
            )
        if match["closes"]:
            start, _ = opened.pop()
            self.mentions.setdefault(match["cluster"], []).append((start, index + 1))

    def finish(self) -> CorefDocument:
        for cluster, opened in self.open_mentions.items():
            for _, location in opened:
                raise location.error(
                    f"a mention of cluster {cluster} is never closed in document {self.name!r}."
                )
        name_parts = re.split("/" if "/" in self.name else "_", self.name)
        is_gum = name_parts[0] == "GUM" and len(name_parts) > 2
        return CorefDocument(
            name=self.name, part=self.part,
            genre=name_parts[0] if "/" in self.name else name_parts[1] if is_gum else None,
            sentences=tuple(tuple(words) for words in self.sentences if words),
            clusters=tuple(sorted(tuple(sorted(each)) for each in self.mentions.values())),
            speakers=tuple(self.speakers) if any(self.speakers) else None,
        )  # fmt: skip
