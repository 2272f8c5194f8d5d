"""Documents with coreference in the columns of CoNLL-2012 (OntoNotes, LitBank, GUM).

``#begin document (NAME); part N`` and ``#end document`` delimit a document, blank lines end its
sentences. Column 4 is the word, column 10 the speaker, the last column the mentions: ``(3`` opens
one of cluster 3, ``3)`` closes the one opened last, ``(3)`` is a single word, ``|`` joins marks.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from elmokit.errors import FormatError
from elmokit.files.atomic import StrPath
from elmokit.files.lines import numbered_lines
from elmokit.files.location import Location, counted, shown
from elmokit.tasks.formats.reading import ExampleReport, read_examples

Span = tuple[int, int]

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
    """Mentions ``(start, end)`` of each, in tokens of the document, end-exclusive.

    Mentions are in text order, clusters in the order of their first mentions.
    """
    speakers: tuple[str | None, ...] | None = None
    """Of each token; None if the file names no speaker."""
    genre: str | None = None
    """``bc`` of ``bc/cctv/00/cctv_0000``, ``fiction`` of ``GUM_fiction_beast``."""
    location: Location
    text: str | None = None
    """As it was written, if that is known."""

    @property
    def tokens(self) -> tuple[str, ...]:
        """All words of the document."""
        return tuple(token for sentence in self.sentences for token in sentence)


@dataclass
class _Draft:
    name: str
    part: int
    location: Location
    sentences: list[list[str]] = field(default_factory=list)
    speakers: list[str | None] = field(default_factory=list)
    mentions: dict[str, list[Span]] = field(default_factory=dict)
    open_mentions: dict[str, list[tuple[int, Location]]] = field(default_factory=dict)
    sentence: list[str] = field(default_factory=list)
    num_columns: int | None = None  # of the current sentence

    def end_sentence(self) -> None:
        if self.sentence:
            self.sentences.append(self.sentence)
        self.sentence, self.num_columns = [], None


def read_coreference(
    path: StrPath, *, report: ExampleReport | None = None
) -> Iterator[CorefDocument]:
    """Yield the documents, each part of one by itself; those without words are skipped.

    Raises:
        FileNotFoundError: at once, if there is no such file.
        FormatError: while reading, for rows outside a document, a document without an end, missing
            columns or words, invalid marks, mentions that are not opened or not closed, or a file
            without documents.
    """
    return read_examples(path, _read, report)


def _read(path: Path, report: ExampleReport) -> Iterator[CorefDocument]:
    draft: _Draft | None = None
    for number, line in numbered_lines(path):
        location = Location(path=path, line=number)
        if line.startswith("#begin document"):
            if draft is not None:
                raise _without_end(draft)
            draft = _begin(line, location)
        elif line.rstrip() == _END:
            if draft is None:
                raise location.error(f"{_END!r} without '#begin document'.")
            document = _finish(draft)
            if document.sentences:
                yield document
            else:
                report.skip("empty_document", draft.location)
            draft = None
        elif not line.strip():
            if draft is not None:
                draft.end_sentence()
        elif draft is None:
            raise location.error(
                f"expected '#begin document (NAME); part N', got {shown(line)}. Every row must "
                f"be in a document."
            )
        else:
            _add_row(draft, line, location)
    if draft is not None:
        raise _without_end(draft)


def _begin(line: str, location: Location) -> _Draft:
    match = _BEGIN.fullmatch(line)
    if match is None:
        raise location.error(f"expected '#begin document (NAME); part N', got {shown(line)}.")
    return _Draft(name=match["name"], part=int(match["part"]), location=location)


def _without_end(draft: _Draft) -> FormatError:
    return draft.location.error(
        f"the document {draft.name!r} has no {_END!r}. Is the file truncated? Copy it again."
    )


def _add_row(draft: _Draft, line: str, location: Location) -> None:
    fields = line.split("\t") if "\t" in line else line.split()
    if draft.num_columns is None:
        draft.num_columns = len(fields)
    if len(fields) != draft.num_columns or len(fields) < _MIN_COLUMNS:
        raise location.error(
            f"{counted(len(fields), 'column')}; expected at least {_MIN_COLUMNS}, the same number "
            f"in all rows of a sentence (here {draft.num_columns}), column 4 the word, the last "
            "the mentions."
        )
    if fields[_WORD_NUMBER] != str(len(draft.sentence)):
        raise location.error(
            f"expected word {len(draft.sentence)} of the sentence (column 3, from 0), got "
            f"{shown(fields[_WORD_NUMBER])}. Is a row missing, or the blank line between sentences?"
        )
    if not fields[_WORD].strip():
        raise location.error("the word (column 4) is empty.")
    index = len(draft.speakers)
    draft.sentence.append(fields[_WORD])
    has_speaker = len(fields) > _SPEAKER + 1 and fields[_SPEAKER] not in _NOTHING
    draft.speakers.append(fields[_SPEAKER] if has_speaker else None)
    marks = fields[-1].strip()
    if marks not in _NOTHING:
        for mark in marks.split("|"):
            _add_mark(draft, mark, index, location)


def _add_mark(draft: _Draft, mark: str, index: int, location: Location) -> None:
    match = _MARK.fullmatch(mark)
    if match is None or not (match["opens"] or match["closes"]):
        raise location.error(
            f"{shown(mark)} in the last column is not a mention; allowed: (3 or 3) or (3), "
            f"joined by |."
        )
    opened = draft.open_mentions.setdefault(match["cluster"], [])
    if match["opens"]:
        opened.append((index, location))
    if match["closes"]:
        if not opened:
            raise location.error(
                f"{mark!r} closes a mention of cluster {match['cluster']}, but none is open."
            )
        start, _ = opened.pop()
        draft.mentions.setdefault(match["cluster"], []).append((start, index + 1))


def _finish(draft: _Draft) -> CorefDocument:
    draft.end_sentence()
    for cluster, opened in draft.open_mentions.items():
        for _, location in opened:
            raise location.error(
                f"the mention of cluster {cluster} that begins here is never closed in document "
                f"{draft.name!r}."
            )
    clusters = sorted(tuple(sorted(mentions)) for mentions in draft.mentions.values())
    has_speakers = any(speaker is not None for speaker in draft.speakers)
    return CorefDocument(
        name=draft.name, part=draft.part, genre=_genre(draft.name), location=draft.location,
        sentences=tuple(map(tuple, draft.sentences)), clusters=tuple(clusters),
        speakers=tuple(draft.speakers) if has_speakers else None,
    )  # fmt: skip


def _genre(name: str) -> str | None:
    if "/" in name:
        return name.split("/")[0]
    parts = name.split("_")
    return parts[1] if parts[0] == "GUM" and len(parts) > 2 else None
