"""CoNLL-U treebanks: one syntactic word per line, in ten columns."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from elmokit.files.atomic import StrPath
from elmokit.files.location import Location, counted, shown
from elmokit.tasks.formats.conll import TaggedSentence, read_blocks
from elmokit.tasks.formats.reading import ExampleReport, read_examples

ConlluColumn = Literal["lemma", "upos", "xpos", "deprel"]

UPOS_TAGS = (
    "ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN",
    "PUNCT", "SCONJ", "SYM", "VERB", "X",
)  # fmt: skip
"""The universal part-of-speech tags."""

_CONLLU_COLUMNS = {"lemma": 2, "upos": 3, "xpos": 4, "deprel": 7}
_NUM_CONLLU_COLUMNS = 10
_WORD_ID = re.compile(r"[1-9][0-9]{0,8}")
_OTHER_ID = re.compile(r"[1-9][0-9]*-[1-9][0-9]*|[0-9]+\.[1-9][0-9]*")  # 3-4 and 8.1


def read_conllu(
    path: StrPath, *, column: ConlluColumn = "upos", report: ExampleReport | None = None
) -> Iterator[TaggedSentence]:
    """Yield the sentences of a CoNLL-U file, with one column as tags (``upos``: only `UPOS_TAGS`).

    Rows of multiword tokens (``3-4``) and empty nodes (``8.1``) are ignored.

    Raises:
        FileNotFoundError: at once, if there is no such file.
        FormatError: while reading, for a row without ten columns, ids that do not count from 1, a
            missing or unknown tag, or a file without sentences.
    """
    return read_examples(path, lambda path, _: _read(path, column), report)


def is_comment(line: str) -> bool:
    """Tell whether a line is a comment: words begin with a digit."""
    return line.startswith("#")


def _read(path: Path, column: ConlluColumn) -> Iterator[TaggedSentence]:
    tag_column = _CONLLU_COLUMNS[column]
    for block in read_blocks(path, is_comment):
        tokens: list[str] = []
        tags: list[str] = []
        for number, line in block:
            location = Location(path=path, line=number)
            fields = line.split("\t")
            if len(fields) != _NUM_CONLLU_COLUMNS:
                raise location.error(
                    f"{counted(len(fields), 'column')}, but CoNLL-U has {_NUM_CONLLU_COLUMNS}, "
                    f"separated by tabs. Is the file truncated, or in another format?"
                )
            if _OTHER_ID.fullmatch(fields[0]):
                continue
            if not _WORD_ID.fullmatch(fields[0]) or int(fields[0]) != len(tokens) + 1:
                raise location.error(
                    f"expected word {len(tokens) + 1} of the sentence, got the id "
                    f"{shown(fields[0])}. Ids count from 1; a blank line ends a sentence."
                )
            if not fields[1].strip():
                raise location.error("the word (column 2) is empty.")
            tag = fields[tag_column]
            # an underscore means "none", but it can also be a lemma
            if not tag or (tag == "_" and column != "lemma"):
                raise location.error(f"no tag in the column {column!r}. Choose a column with tags.")
            if column == "upos" and tag not in UPOS_TAGS:
                raise location.error(
                    f"unknown tag {shown(tag)} in the column {column!r}; allowed: "
                    f"{', '.join(UPOS_TAGS)}."
                )
            tokens.append(fields[1])
            tags.append(tag)
        begin = Location(path=path, line=block[0][0])
        if not tokens:
            raise begin.error("the sentence has no words.")
        yield TaggedSentence(tokens=tuple(tokens), tags=tuple(tags), location=begin)
