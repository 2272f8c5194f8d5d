"""A smaller data set: some sentences, pairs, trees, questions or documents of a file.

The draw depends on the file alone, not on a run's seed, so that every run of a task has the same
examples; a smaller sample is part of a larger one. Formats stay as they are.
"""

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from elmokit.errors import InputError
from elmokit.files.atomic import atomic_file
from elmokit.files.lines import numbered_lines, read_text
from elmokit.files.location import Location, shown
from elmokit.tasks.formats.records import Record

SAMPLE_VERSION = 2
"""Changes whenever the same file would give another sample."""
COMPRESSED = (".gz", ".xz", ".zst")

Predicates = Literal["all", "verbs"]


def sample_file(
    source: Path, directory: Path, *, task: str, limit: int | None, predicates: Predicates = "all"
) -> Path:
    """Return a file with at most ``limit`` examples of a task's file, and at least one unit.

    Args:
        source: The file; it is returned itself where nothing has to be left out.
        directory: Where a smaller one is written, without compression.
        task: Says what an example is: a sentence (pos, ner, srl), a tree, text or pair (sentiment,
            nli), a question (qa; whole paragraphs are drawn) or a document (coref).
        limit: Most examples; none: all.
        predicates: Semantic roles: ``verbs`` leaves the other predicates out.

    Raises:
        InputError: for CSV, whose rows may hold line breaks.
        FormatError: if the file is damaged.
    """
    if limit is None and predicates == "all":
        return source
    suffixes = [suffix for suffix in source.suffixes if suffix not in COMPRESSED]
    suffix = suffixes[-1] if suffixes else ""
    if suffix == ".csv":
        raise InputError(f"{source}: no sample can be drawn of CSV. Give TSV or JSON lines.")
    draw = _Draw(limit)
    if task == "qa":
        text = _sample_paragraphs(_document(source), draw)
    else:
        lines = [line for _, line in numbered_lines(source)]
        header = 1 if suffix == ".tsv" and task in ("sentiment", "nli") else 0
        units = _units(lines[header:], task)
        if predicates == "verbs":
            units = [
                [_only_verbs(line, Location(path=source, line=number))]
                for number, line in enumerate(lines, 1)
                if line.strip()
            ]
        chosen = draw.of(units)
        text = "".join(f"{line}\n" for unit in [lines[:header], *chosen] for line in unit)
    target = directory / f"{source.name.partition('.')[0]}{suffix}"
    with atomic_file(target) as temp_path:
        temp_path.write_text(text, encoding="utf-8")
    return target


class _Draw:
    """Takes units in random order until one would be too much; returns them in their own order."""

    def __init__(self, limit: int | None) -> None:
        self.limit = limit

    def of(self, units: Sequence[Any], size: Callable[[Any], int] = lambda unit: 1) -> list[Any]:
        """Return the units drawn."""
        order = list(range(len(units)))
        random.Random(0).shuffle(order)
        taken, total = [], 0
        for index in order:
            total += size(units[index])
            if self.limit is not None and taken and total > self.limit:
                break
            taken.append(index)
        return [units[index] for index in sorted(taken)]


def _units(lines: Sequence[str], task: str) -> list[list[str]]:
    """Divide lines into examples; blank lines and document marks stay with theirs."""
    if task in ("srl", "sentiment", "nli"):
        return [[line] for line in lines if line.strip()]
    ends_here = (
        (lambda line: line.startswith("#end document"))
        if task == "coref"
        else (lambda line: not line.strip())
    )
    units: list[list[str]] = [[]]
    for line in lines:
        units[-1].append(line)
        if ends_here(line):
            units.append([])
    whole = [unit for unit in units if any(line.strip() for line in unit)]
    if whole and task != "coref" and whole[-1][-1].strip():
        whole[-1].append("")  # the last sentence of a file may lack its blank line
    return whole


def _only_verbs(line: str, location: Location) -> str:
    record = Record(fields=_json_object(line, location), location=location)
    pos = record.value("pos")
    if not isinstance(pos, list) or not all(isinstance(tag, str) for tag in pos):
        raise location.error(f"field 'pos' must be a list of strings, got {shown(pos)}.")
    verbs = []
    for one in _records(record, "predicates"):
        index = one.integer("index")
        if not 0 <= index < len(pos):
            raise one.location.error(f"the index {index} is outside the {len(pos)} tokens.")
        if pos[index].startswith(("V", "MD")):
            verbs.append(one.fields)
    return json.dumps({**record.fields, "predicates": verbs}, ensure_ascii=False)


def _document(path: Path) -> Record:
    location = Location(path=path)
    return Record(fields=_json_object(read_text(path), location), location=location)


def _sample_paragraphs(document: Record, draw: _Draw) -> str:
    paragraphs = [
        (article.fields.get("title", ""), paragraph.fields, len(_records(paragraph, "qas")))
        for article in _records(document, "data")
        for paragraph in _records(article, "paragraphs")
    ]
    chosen = draw.of(paragraphs, lambda one: one[2])
    data = [{"title": title, "paragraphs": [paragraph]} for title, paragraph, _ in chosen]
    return json.dumps({**document.fields, "data": data}, ensure_ascii=False)


def _json_object(text: str, location: Location) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        # of a line its own number, of a document the decoder's
        line = location.line or error.lineno
        raise Location(path=location.path, line=line).error(
            f"no JSON: {error.msg} at column {error.colno}. Is the file cut? Copy it again."
        ) from error
    except (ValueError, RecursionError) as error:
        raise location.error(f"no JSON that can be read: {error}.") from error
    if not isinstance(value, dict):
        raise location.error(f"expected a JSON object, got {shown(value)}.")
    return value


def _records(parent: Record, name: str) -> list[Record]:
    """Return a field that must be a list of objects, each with its location."""
    values = parent.value(name)
    if not isinstance(values, list):
        raise parent.location.error(f"field {name!r} must be a list, got {shown(values)}.")
    before = f"{parent.location.part}." if parent.location.part else ""
    found = []
    for index, value in enumerate(values):
        location = Location(
            path=parent.location.path, line=parent.location.line, part=f"{before}{name}[{index}]"
        )
        if not isinstance(value, dict):
            raise location.error(f"expected a JSON object, got {shown(value)}.")
        found.append(Record(fields=value, location=location))
    return found
