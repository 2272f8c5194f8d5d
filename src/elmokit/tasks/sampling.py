"""Division of task data files into units, for smaller data sets in the same format."""

import json
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmokit.errors import Location
from elmokit.files.lines import numbered_lines, read_text
from elmokit.tasks.formats import conll
from elmokit.tasks.formats.reading import Record, parse_json, read_records


def _join(units: Sequence[Sequence[str]]) -> str:
    return "".join(f"{line}\n" for lines in units for line in lines)


@dataclass(frozen=True)
class DataFile:
    """A data file in units that a sample keeps whole, in file order."""

    units: Sequence[Any]  # lines of each; of JSON documents anything that ``join`` understands
    join: Callable[[Sequence[Any]], str] = _join  # makes the text of a file from units
    size: Callable[[Any], int] = len  # examples in a unit


def lines_of(path: Path) -> DataFile:
    """Divide a file without a header into its lines."""
    return DataFile([[line] for _, line in numbered_lines(path) if line.strip()])


def records_of(
    path: Path, key: Callable[[Record], Hashable] = lambda record: record.location.line
) -> DataFile:
    """Divide JSON lines or a table into the records with the same key; samples keep the header."""
    lines, header, groups = dict(numbered_lines(path)), [], {}
    for record in read_records(path):
        number = record.location.line
        assert number is not None  # records of lines
        if not groups:
            header = [line for before, line in lines.items() if before < number and line.strip()]
        groups.setdefault(key(record), []).append(lines[number])
    return DataFile(list(groups.values()), lambda units: _join([header, *units]))


def sentences_of(path: Path, *, is_comment: Callable[[str], bool] = conll.is_comment) -> DataFile:
    """Divide columns into sentences; each ends with a blank line."""
    units = _blocks(path, lambda line: not line.strip())
    if units and units[-1][-1].strip():
        units[-1].append("")  # the last sentence may lack its blank line

    def is_row(line: str) -> bool:
        is_mark = is_comment(line) or line.startswith(conll.DOCUMENT_MARK)
        return bool(line.strip()) and not is_mark

    return DataFile(units, size=lambda unit: int(any(map(is_row, unit))))


def documents_of(path: Path) -> DataFile:
    """Divide columns of CoNLL-2012 into documents; the parts of one have the same name."""
    documents: dict[str, list[list[str]]] = {}
    for part in _blocks(path, lambda line: line.startswith("#end document")):
        begin = next((line for line in part if line.startswith("#begin document")), "")
        documents.setdefault(begin.partition(");")[0], []).append(part)
    return DataFile(list(documents.values()), lambda units: "".join(map(_join, units)))


def paragraphs_of(path: Path) -> DataFile:
    """Divide JSON in the layout of SQuAD into paragraphs, each with all its questions."""
    from elmokit.tasks.qa import Document

    text = read_text(path)
    parse_json(text, Document, Location(path=path))
    document = json.loads(text)
    units = [
        {"title": article.get("title", ""), "paragraphs": [paragraph]}
        for article in document["data"]
        for paragraph in article["paragraphs"]
    ]

    def join(units: Sequence[Any]) -> str:
        return json.dumps({**document, "data": list(units)}, ensure_ascii=False)

    return DataFile(units, join, lambda unit: len(unit["paragraphs"][0]["qas"]))


def predicates_of(path: Path, *, only_verbs: bool = False) -> DataFile:
    """Divide JSON lines of sentences; their predicates, or those that are verbs, are examples."""
    from elmokit.tasks.formats.conllu import read_sentence

    units = []
    for record in read_records(path):
        sentence = read_sentence(record)
        if only_verbs and len(sentence.pos) != len(sentence.tokens):
            raise record.location.error(
                f"{len(sentence.tokens)} `tokens`, but {len(sentence.pos)} `pos`. Each token needs "
                "one."
            )
        pairs = zip(record.fields["predicates"], sentence.predicates, strict=True)
        predicates = [
            fields
            for fields, predicate in pairs
            if not only_verbs or sentence.pos[predicate.index].startswith(("V", "MD"))
        ]
        line = json.dumps({**record.fields, "predicates": predicates}, ensure_ascii=False)
        units.append((line, len(predicates)))
    return DataFile(units, lambda units: _join([[line] for line, _ in units]), lambda unit: unit[1])


def _blocks(path: Path, ends_here: Callable[[str], bool]) -> list[list[str]]:
    """Divide lines into blocks; blocks of blank lines are dropped."""
    blocks: list[list[str]] = [[]]
    for _, line in numbered_lines(path):
        blocks[-1].append(line)
        if ends_here(line):
            blocks.append([])
    return [block for block in blocks if any(line.strip() for line in block)]
