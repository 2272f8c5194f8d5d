"""CoNLL-U treebanks: one syntactic word per line, in ten columns; morphemes of Korean ones."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from elmokit.files.atomic import StrPath
from elmokit.tasks.formats.conll import Row, TaggedSentence, read_blocks
from elmokit.tasks.formats.reading import read_examples
from elmokit.wording import Location, shown

ConlluColumn = Literal["lemma", "upos", "xpos", "deprel"]

UPOS_TAGS = (
    "ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN",
    "PUNCT", "SCONJ", "SYM", "VERB", "X",
)  # fmt: skip
"""The universal part-of-speech tags."""

_WORD = 1
_COLUMNS = {"lemma": 2, "upos": 3, "xpos": 4, "deprel": 7}
_NUM_COLUMNS = 10
_OTHER_ID = re.compile(r"[1-9][0-9]*-[1-9][0-9]*|[0-9]+\.[1-9][0-9]*")  # 3-4 and 8.1
_JOINT, _NOTHING = "+", "_"


def read_conllu(path: StrPath, *, column: ConlluColumn = "upos") -> Iterator[TaggedSentence]:
    """Yield the sentences of a CoNLL-U file, with one column as tags (``upos``: only `UPOS_TAGS`).

    Rows of multiword tokens (``3-4``) and empty nodes (``8.1``) are ignored.
    """

    def tagged(path: Path) -> Iterator[TaggedSentence]:
        for rows in _sentences(path):
            tags = tuple(_tag(row, column) for row in rows)
            words = tuple(fields[_WORD] for _, fields in rows)
            yield TaggedSentence(tokens=words, tags=tags, location=rows[0][0])

    return read_examples(path, lambda path, _: tagged(path))


def read_morphemes(path: StrPath) -> Iterator[TaggedSentence]:
    """Yield sentences of morphemes with their tags, from ``고향+은`` and ``ncn+jxt``.

    Columns 3 (lemma) and 5 (language-specific tag) hold them, joined by ``+``, as in UD
    Korean-Kaist and Korean-GSD; a lone plus sign is a word.
    """

    def divided(path: Path) -> Iterator[TaggedSentence]:
        for rows in _sentences(path):
            tokens, tags = zip(*(pair for row in rows for pair in _morphemes(*row)), strict=True)
            yield TaggedSentence(tokens=tokens, tags=tags, location=rows[0][0])

    return read_examples(path, lambda path, _: divided(path))


def is_comment(line: str) -> bool:
    """Tell whether a line is a comment: words begin with a digit."""
    return line.startswith("#")


def _sentences(path: Path) -> Iterator[list[Row]]:
    """Yield the rows of the words of each sentence."""
    for block in read_blocks(path, is_comment):
        rows: list[Row] = []
        for number, line in block:
            location, fields = Location(path=path, line=number), line.split("\t")
            if len(fields) == _NUM_COLUMNS and _OTHER_ID.fullmatch(fields[0]):
                continue
            expected = str(len(rows) + 1)
            if len(fields) != _NUM_COLUMNS or fields[0] != expected or not fields[_WORD].strip():
                raise location.error(
                    f"expected word {expected} of a sentence: its id, the word and "
                    f"{_NUM_COLUMNS - 2} more columns, separated by tabs, got {shown(fields)}. Ids "
                    "count from 1; a blank line ends a sentence. Is the file truncated, or in "
                    "another format?"
                )
            rows.append((location, fields))
        if not rows:
            raise Location(path=path, line=block[0][0]).error("the sentence has no words.")
        yield rows


def _tag(row: Row, column: ConlluColumn) -> str:
    location, fields = row
    tag = fields[_COLUMNS[column]]
    # An underscore means "none", but it can also be a lemma.
    is_missing = not tag or (tag == _NOTHING and column != "lemma")
    if is_missing or (column == "upos" and tag not in UPOS_TAGS):
        allowed = f"; allowed: {', '.join(UPOS_TAGS)}" if column == "upos" else ""
        raise location.error(
            f"{shown(tag)} is no tag of the column {column!r}{allowed}. Choose a column with tags."
        )
    return tag


def _morphemes(location: Location, fields: list[str]) -> Iterator[tuple[str, str]]:
    word, joined, joined_tags = (fields[at] for at in (_WORD, _COLUMNS["lemma"], _COLUMNS["xpos"]))
    morphemes, tags = _divide(joined), _divide(joined_tags)
    if joined == _JOINT:  # its tag may be incomplete: "+SW"
        tags = [tag for tag in tags if tag]
    elif len(tags) == 1:  # a word that contains a plus sign
        morphemes = [joined]
    is_missing = joined == _NOTHING != word or joined_tags == _NOTHING
    if is_missing or len(morphemes) != len(tags) or not all(morphemes + tags):
        raise location.error(
            f"the word {shown(word)} has morphemes {shown(joined)} and the tags "
            f"{shown(joined_tags)}: columns 3 and 5 must hold one tag for each morpheme, joined by "
            f"'{_JOINT}'. Read the file by words (units=words)."
        )
    return zip(morphemes, tags, strict=True)


def _divide(joined: str) -> list[str]:
    return [joined] if joined == _JOINT else joined.split(_JOINT)
