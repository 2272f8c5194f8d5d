"""Columns of CoNLL: tagged sentences, and documents with coreference (OntoNotes)."""

import itertools
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

from elmokit.errors import Location, shown
from elmokit.files.atomic import StrPath
from elmokit.files.lines import numbered_lines
from elmokit.metrics.task_scores import Span, convert_tags, read_spans, write_tags
from elmokit.tasks.formats.data_files import (
    DataFile,
    ExampleReport,
    join_lines,
    read_examples,
)
from elmokit.text.alignment import Offsets, align, covering_words
from elmokit.text.given_sentences import Tokenize

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
    location: Location | None = None  # of the first word, in a file
    text: str | None = None  # as it was written, if that is known


@dataclass(frozen=True, kw_only=True, slots=True)
class TaggedCharacters(TaggedSentence):
    """A text in tokens of a tokenizer, with tags of tokens and of characters, both IOB2."""

    offsets: Offsets  # of the tokens, in characters of the text
    character_tags: tuple[str, ...]


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


def check_words(
    rows: Sequence[Row], *, num_columns: int, number_at: int, word_at: int, first: int
) -> None:
    """Refuse rows of a sentence that lack a column or a word, or are not numbered in order."""
    for number, (location, fields) in enumerate(rows, first):
        is_whole = len(fields) == num_columns and fields[word_at].strip()
        if not is_whole or fields[number_at] != str(number):
            raise location.error(
                f"expected word {number} of a sentence: its number (from {first}) in column "
                f"{number_at + 1}, the word in column {word_at + 1} of {num_columns} columns, "
                f"separated by tabs or spaces, got {shown(fields)}."
            )


def read_columns(
    path: StrPath, *, spaces: Literal["keep", "drop"] = "keep"
) -> Iterator[TaggedSentence]:
    """Yield the sentences of a file with words in the first column and tags in the last.

    ``# ...`` is a comment before a sentence, but not inside one, unless it has as many columns as
    other rows and ends with a tag. Sentences with an empty token are skipped. Tags of any scheme
    become IOB2. ``spaces="drop"`` leaves out rows for spaces between words (a token of spaces, or
    ``_`` in every column but the tag); if a chunk began there, it begins at the next word.
    """
    return read_examples(path, partial(_read_columns, spaces=spaces))


def _read_columns(path: Path, report: ExampleReport, *, spaces: str) -> Iterator[TaggedSentence]:
    # Marks of documents stand between sentences, in old files without a blank line.
    blocks = [
        list(rows)
        for block in read_blocks(path)
        for is_mark, rows in itertools.groupby(block, _is_document_mark)
        if not is_mark
    ]
    first = next((row for rows in blocks for row in rows if not is_comment(row.fields[0])), None)
    if first is None:
        return
    while all(is_comment(row.fields[0]) for row in blocks[0]):
        del blocks[0]  # notes at the head of the file
    width = len(first.fields)

    def is_note(row: Row) -> bool:  # not the word "#", which has a tag and as many columns
        is_row = len(row.fields) == width > 1 and _TAG.fullmatch(row.fields[-1])
        return is_comment(row.fields[0]) and not is_row

    def is_space(row: Row) -> bool:
        others = row.fields[:-1]
        return others[0].isspace() or (len(others) > 1 and set(others) == {"_"})

    sentences = [list(itertools.dropwhile(is_note, rows)) for rows in blocks]
    _check_rows([row for rows in sentences for row in rows], first)
    for rows in filter(None, sentences):
        location = rows[0].location
        if spaces == "drop":
            rows = [row for row in rows if not is_space(row)]
        words = [row.fields[0] for row in rows]
        if words and all(words):
            tags = [row.fields[-1] for row in rows]
            tags = to_iob2(tags, [row.location for row in rows], report)
            yield TaggedSentence(tokens=tuple(words), tags=tuple(tags), location=location)
        else:
            report.skip("empty_token" if words else "empty_sentence", location)


def _is_document_mark(row: Row) -> bool:
    return row.fields[0].startswith(DOCUMENT_MARK)


def _check_rows(rows: list[Row], first: Row) -> None:
    """Refuse rows of other columns, words that only count, and a guess between columns of tags."""
    width = len(first.fields)
    for row in rows:
        if len(row.fields) != width or width == 1:
            raise row.location.error(
                f"the row {shown(row.fields)} must have the {max(2, width)} columns of the "
                "first row, a word and its tag among them, separated by tabs, or all by spaces."
            )
    types = {
        at: {row.fields[at][2:] for row in rows} - {""}
        for at in range(width)
        if at and all(_TAG.fullmatch(row.fields[at]) for row in rows)
    }
    rivals = [at for at in types if types[at] & types[max(types)]]
    # With the wrong columns a model would learn to tag numbers, or inner spans, without a sign.
    if len(rows) > 1 and all(_INDEX.fullmatch(row.fields[0]) for row in rows):
        fault = "column 1 has no words, only numbers"
    elif len(rivals) > 1:
        fault = f"columns {' and '.join(str(at + 1) for at in rivals)} have tags of the same types"
    else:
        return
    raise first.location.error(
        f"{fault}. The row is {shown(first.fields)}. Write a file with the column of the words and "
        "that of the tags to read, such as: cut -f 2,3 IN > OUT."
    )


def to_iob2(tags: Sequence[str], locations: Iterable[Location], report: ExampleReport) -> list[str]:
    """Return tags of any scheme (IOB1, IOB2, BIOUL, IOBES) as IOB2, read as conlleval does."""
    for tag, location in zip(tags, locations, strict=False):
        if not _TAG.fullmatch(tag):
            raise location.error(
                f"ill-formed tag {shown(tag)}; allowed are O, and B, I, L, U, E or S with a type "
                "other than O. Delete a row of names; tags are in the last column."
            )
    legal = convert_tags(tags, scheme="iob2")
    pairs = zip(tags, legal, strict=True)
    report.noted["chunk_begins_with_I"] += sum(a[0] == "I" and b[0] == "B" for a, b in pairs)
    return legal


def read_characters(path: StrPath, tokenize: Tokenize) -> Iterator[TaggedCharacters]:
    """Yield the texts of a file with one character and its IOB2 tag per row, spaces included."""
    return (_tokenized(text, tokenize) for text in read_columns(path))


def _tokenized(characters: TaggedSentence, tokenize: Tokenize) -> TaggedCharacters:
    begin = characters.location
    assert begin is not None  # it was read from a file
    # only what is decomposed: some single characters are not stable under NFC
    signs = [
        sign if len(sign) == 1 else unicodedata.normalize("NFC", sign) for sign in characters.tokens
    ]
    longest = max(signs, key=len)
    if len(longest) > 1:
        raise begin.error(
            f"{shown(longest)} is not one character: with units=characters each row has one, "
            "spaces included, and its tag; only models of units=words read rows of words."
        )
    text = "".join(signs)
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
    """Return the tokens that hold a character of each span; each token is in one span at most."""
    result: list[Span] = []
    for kind, start, end in sorted(spans, key=lambda span: span[1:]):
        after = result[-1][2] if result else 0
        if covering := covering_words(offsets[after:], start, end):
            first, last = covering
            result.append((kind, after + first, after + last))
    return result


def spans_of_characters(spans: list[Span], offsets: Offsets) -> list[Span]:
    """Return the characters of each span of tokens; shared ones belong to the first."""
    result: list[Span] = []
    for kind, start, end in spans:
        first, last = offsets[start][0], offsets[end - 1][1]
        first = max(first, result[-1][2] if result else 0)
        if first < last:
            result.append((kind, first, last))
    return result


def sentences_of(path: Path, *, is_comment: Callable[[str], bool] = is_comment) -> DataFile:
    """Divide columns into sentences; each ends with a blank line."""
    units = _divided(path, lambda line: not line.strip())
    if units and units[-1][-1].strip():
        units[-1].append("")  # the last sentence may lack its blank line

    def is_row(line: str) -> bool:
        is_mark = is_comment(line) or line.startswith(DOCUMENT_MARK)
        return bool(line.strip()) and not is_mark

    return DataFile(units, size=lambda unit: int(any(map(is_row, unit))))


def _divided(path: Path, ends_here: Callable[[str], bool]) -> list[list[str]]:
    """Divide lines into blocks; blocks of blank lines are dropped."""
    blocks: list[list[str]] = [[]]
    for _, line in numbered_lines(path):
        blocks[-1].append(line)
        if ends_here(line):
            blocks.append([])
    return [block for block in blocks if any(line.strip() for line in block)]


Mention = tuple[int, int]
Clusters = list[list[Mention]]

_BEGIN = re.compile(r"#begin document \((?P<name>.*)\); *part +[0-9]+ *")
_END = "#end document"
_MARK = re.compile(r"(?P<opens>\()?(?P<cluster>[0-9]+)(?P<closes>\))?")
_WORD_NUMBER, _WORD, _SPEAKER = 2, 3, 9
_MIN_COLUMNS = 5
_NOTHING = ("", "-", "_", "*")


@dataclass(frozen=True, kw_only=True, slots=True)
class CorefDocument:
    """A text and its clusters of mentions; singletons are included if the data has them."""

    name: str
    sentences: tuple[tuple[str, ...], ...]
    clusters: tuple[tuple[Mention, ...], ...]
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
    begin: re.Match[str] | None = None
    location, sentences = Location(path=path), [[]]
    for block in read_blocks(path):
        sentences.append([])
        for row in block:
            line = " ".join(row.fields).rstrip()
            if begin is None:
                begin, location, sentences = _BEGIN.fullmatch(line), row.location, [[]]
                if begin is None:
                    raise location.error(
                        f"expected '#begin document (NAME); part N', got {shown(line)}. Every row "
                        "must be in a document."
                    )
            elif line != _END:
                sentences[-1].append(row)
            else:
                document = _document(begin, list(filter(None, sentences)))
                if document.sentences:
                    yield document
                else:
                    report.skip("empty_document", location)
                begin = None
    if begin is not None:
        raise location.error(
            f"the document {begin['name']!r} has no {_END!r}. Is the file truncated? Copy it again."
        )


def _document(begin: re.Match[str], sentences: list[list[Row]]) -> CorefDocument:
    name, rows = begin["name"], [row for sentence in sentences for row in sentence]
    for sentence in sentences:
        num_columns = max(_MIN_COLUMNS, len(sentence[0].fields))
        check_words(
            sentence, num_columns=num_columns, number_at=_WORD_NUMBER, word_at=_WORD, first=0
        )
    speakers = tuple(
        row.fields[_SPEAKER]
        if len(row.fields) > _SPEAKER + 1 and row.fields[_SPEAKER] not in _NOTHING
        else None
        for row in rows
    )
    name_parts = re.split("/" if "/" in name else "_", name)
    is_gum = name_parts[0] == "GUM" and len(name_parts) > 2
    return CorefDocument(
        name=name,
        genre=name_parts[0] if "/" in name else name_parts[1] if is_gum else None,
        sentences=tuple(tuple(row.fields[_WORD] for row in sentence) for sentence in sentences),
        clusters=_clusters(rows, name), speakers=speakers if any(speakers) else None,
    )  # fmt: skip


def _clusters(rows: list[Row], name: str) -> tuple[tuple[Mention, ...], ...]:
    """Return the mentions that the marks in the last column open and close, by cluster."""
    mentions: dict[str, list[Mention]] = {}
    open_mentions: dict[str, list[tuple[int, Location]]] = {}
    for index, (location, fields) in enumerate(rows):
        marks = fields[-1].strip()
        for mark in () if marks in _NOTHING else marks.split("|"):
            match = _MARK.fullmatch(mark)
            opened = open_mentions.setdefault(match["cluster"], []) if match else []
            if match and match["opens"]:
                opened.append((index, location))
            if match is None or not opened or not (match["opens"] or match["closes"]):
                raise location.error(
                    f"{shown(mark)} in the last column neither opens nor closes a mention; allowed:"
                    " (3 or (3), joined by |, and 3) where (3 is open."
                )
            if match["closes"]:
                start, _ = opened.pop()
                mentions.setdefault(match["cluster"], []).append((start, index + 1))
    for cluster, opened in open_mentions.items():
        for _, location in opened:
            raise location.error(
                f"a mention of cluster {cluster} is never closed in document {name!r}."
            )
    return tuple(sorted(tuple(sorted(each)) for each in mentions.values()))


def documents_of(path: Path) -> DataFile:
    """Divide columns of CoNLL-2012 into documents; the parts of one have the same name."""
    documents: dict[str, list[list[str]]] = {}
    for part in _divided(path, lambda line: line.startswith(_END)):
        begin = next((line for line in part if line.startswith("#begin document")), "")
        documents.setdefault(begin.partition(");")[0], []).append(part)
    return DataFile(list(documents.values()), lambda units: "".join(map(join_lines, units)))
