"""CoNLL-U treebanks, morphemes of Korean ones, and the predicates of PropBank beside them."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from pydantic import BaseModel

from elmokit.errors import shown
from elmokit.files.atomic import StrPath
from elmokit.tasks.formats.conll import Row, TaggedSentence, check_words, read_blocks, to_iob2
from elmokit.tasks.formats.data_files import (
    DataFile,
    ExampleReport,
    Record,
    join_lines,
    read_examples,
    read_records,
)

UPOS_TAGS = (
    "ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN",
    "PUNCT", "SCONJ", "SYM", "VERB", "X",
)  # fmt: skip
"""The universal part-of-speech tags."""

_WORD, _LEMMA, _UPOS, _XPOS = 1, 2, 3, 4
_NUM_COLUMNS = 10
_OTHER_ID = re.compile(r"[1-9][0-9]*-[1-9][0-9]*|[0-9]+\.[1-9][0-9]*")  # 3-4 and 8.1


def read_conllu(path: StrPath) -> Iterator[TaggedSentence]:
    """Yield the sentences of a CoNLL-U file with universal tags."""
    return _read(path, lambda row: [(row.fields[_WORD], _tag(row))])


def read_morphemes(path: StrPath) -> Iterator[TaggedSentence]:
    """Yield sentences of morphemes with their tags, from ``고향+은`` and ``ncn+jxt``.

    Columns 3 (lemma) and 5 (language-specific tag) hold them, joined by ``+``, as in UD
    Korean-Kaist and Korean-GSD; a lone plus sign is a word.
    """
    return _read(path, _morphemes)


def is_comment(line: str) -> bool:
    """Tell whether a line is a comment: words begin with a digit."""
    return line.startswith("#")


def _read(
    path: StrPath, pairs_of: Callable[[Row], list[tuple[str, str]]]
) -> Iterator[TaggedSentence]:
    def sentence(block: list[Row]) -> TaggedSentence:
        rows = _words(block)
        tokens, tags = zip(*chain.from_iterable(map(pairs_of, rows)), strict=True)
        return TaggedSentence(tokens=tokens, tags=tags, location=rows[0].location)

    return read_examples(path, lambda path, _: map(sentence, read_blocks(path, is_comment)))


def _words(block: list[Row]) -> list[Row]:
    rows = [
        row
        for row in block
        if len(row.fields) != _NUM_COLUMNS or not _OTHER_ID.fullmatch(row.fields[0])
    ]
    check_words(rows, num_columns=_NUM_COLUMNS, number_at=0, word_at=_WORD, first=1)
    if not rows:
        raise block[0].location.error("the sentence has no words.")
    return rows


def _tag(row: Row) -> str:
    tag = row.fields[_UPOS]
    if tag not in UPOS_TAGS:
        raise row.location.error(
            f"{shown(tag)} is no tag of the column 'upos'; allowed: {', '.join(UPOS_TAGS)}."
        )
    return tag


def _morphemes(row: Row) -> list[tuple[str, str]]:
    word, joined, joined_tags = (row.fields[at] for at in (_WORD, _LEMMA, _XPOS))
    tags = [joined_tags] if joined_tags == "+" else joined_tags.split("+")
    morphemes = joined.split("+")
    if joined == "+":  # a word by itself, whose tag may be incomplete: "+SW"
        morphemes, tags = [joined], [tag for tag in tags if tag]
    elif len(tags) == 1:  # a word that contains a plus sign
        morphemes = [joined]
    is_missing = joined == "_" != word or joined_tags == "_"
    if is_missing or len(morphemes) != len(tags) or not all(morphemes + tags):
        raise row.location.error(
            f"the word {shown(word)} has the morphemes {shown(joined)} in column 3 and the tags "
            f"{shown(joined_tags)} in column 5: one for each is needed, joined by '+'. Read the "
            "file by words (units=words)."
        )
    return list(zip(morphemes, tags, strict=True))


class _Predicate(BaseModel):
    index: int
    tags: tuple[str, ...] = ()


class AnnotatedSentence(BaseModel):
    """A line of a file."""

    tokens: tuple[str, ...]
    pos: tuple[str, ...] = ()
    predicates: list[_Predicate]


@dataclass(frozen=True, kw_only=True, slots=True)
class PredicateRoles:
    """A sentence and the roles of its words for one predicate."""

    tokens: tuple[str, ...]
    predicate: int  # index of its token
    tags: tuple[str, ...]
    """IOB2, as in the data: ``B-V`` need not be at ``predicate`` if the verb is split."""
    text: str | None = None  # as it was written, with its marks, if that is known


def read_sentence(record: Record) -> AnnotatedSentence:
    """Return a record as a sentence, whose predicates are words of it."""
    sentence = record.as_model(AnnotatedSentence)
    for number, predicate in enumerate(sentence.predicates):
        if not 0 <= predicate.index < len(sentence.tokens):
            raise replace(record.location, part=f"predicates[{number}]").error(
                f"index {predicate.index} is outside the sentence of {len(sentence.tokens)} tokens."
            )
    return sentence


def read_propbank(path: StrPath) -> Iterator[PredicateRoles]:
    """Yield one example for each predicate; sentences with an empty token are skipped."""
    return read_examples(path, _read_propbank)


def _read_propbank(path: Path, report: ExampleReport) -> Iterator[PredicateRoles]:
    for record in read_records(path):
        sentence = read_sentence(record)
        tokens = sentence.tokens
        for number, predicate in enumerate(sentence.predicates):
            location, tags = replace(record.location, part=f"predicates[{number}]"), predicate.tags
            if not all(tokens):
                report.skip("empty_token", location)
                continue
            if len(tags) != len(tokens):
                raise location.error(f"{len(tokens)} `tokens`, but {len(tags)} `tags`.")
            tags = tuple(to_iob2(tags, [location] * len(tags), report))
            yield PredicateRoles(tokens=tokens, predicate=predicate.index, tags=tags)


def predicates_of(path: Path, *, only_verbs: bool = False) -> DataFile:
    """Divide JSON lines of sentences; their predicates, or those that are verbs, are examples."""
    units = []
    for record in read_records(path):
        sentence = read_sentence(record)
        if only_verbs and len(sentence.pos) != len(sentence.tokens):
            raise record.location.error(
                f"{len(sentence.tokens)} `tokens`, but {len(sentence.pos)} `pos`. Each token needs "
                "one."
            )
        predicates = [
            fields
            for fields, predicate in zip(
                record.fields["predicates"], sentence.predicates, strict=True
            )
            if not only_verbs or sentence.pos[predicate.index].startswith(("V", "MD"))
        ]
        line = json.dumps({**record.fields, "predicates": predicates}, ensure_ascii=False)
        units.append((line, len(predicates)))
    return DataFile(
        units, lambda units: join_lines([[line] for line, _ in units]), lambda unit: unit[1]
    )
