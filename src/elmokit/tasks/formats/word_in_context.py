"""The same word in two texts, and whether it means the same: WiC, MCL-WiC and KoBEST."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmokit.files.atomic import StrPath
from elmokit.files.lines import numbered_lines, read_text
from elmokit.files.sources import existing_file
from elmokit.tasks.formats.reading import ExampleReport, read_examples
from elmokit.tasks.formats.records import Record, first_named, parse_json, read_records
from elmokit.wording import Location

LABELS_APART = ".data"  # suffix of files whose labels are in a file of their own


@dataclass(frozen=True, kw_only=True, slots=True)
class WordInContext:
    """A text and the position of the target word, in characters, end-exclusive."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ContextPair:
    """The same word in two texts: does it mean the same?"""

    lemma: str
    first: WordInContext
    second: WordInContext
    same_sense: bool
    location: Location


_WordOf = Callable[[Record, int, ExampleReport], WordInContext | None]


def read_wic(path: StrPath) -> Iterator[ContextPair]:
    """Yield pairs of ``lemma`` (or ``word``), ``sentence1, start1, end1, sentence2, …, label``.

    They are records, as in SuperGLUE, or the files of MCL-WiC and of WiC as they are distributed:
    ``NAME.data…`` with the labels in ``NAME.gold…`` beside it. Pairs with a span that is empty or
    outside its text are skipped.
    """
    return _read(path, _by_offsets, ("word", "lemma"), "label")


def read_kobest_wic(path: StrPath) -> Iterator[ContextPair]:
    """Yield pairs of KoBEST, where ``[ ]`` marks the word; the first of several marks counts."""
    return _read(path, _by_marks, ("Target",), "ANSWER")


def _read(
    path: StrPath, word_of: _WordOf, lemma_names: Sequence[str], label_name: str
) -> Iterator[ContextPair]:
    def pairs(path: Path, report: ExampleReport) -> Iterator[ContextPair]:
        for record in _labeled_apart(path) if LABELS_APART in path.suffixes else read_records(path):
            first, second = word_of(record, 1, report), word_of(record, 2, report)
            lemma = record.text(first_named(iter([record]), lemma_names))
            same_sense = record.value(label_name, bool)
            if first is None or second is None:
                report.skip("target_not_in_text", record.location)
            else:
                yield ContextPair(
                    lemma=lemma, first=first, second=second, same_sense=same_sense,
                    location=record.location,
                )  # fmt: skip

    return read_examples(path, pairs)


def _labeled_apart(path: Path) -> Iterator[Record]:
    """Yield the records of ``NAME.data…`` with the labels of ``NAME.gold…``."""
    name = path.name.replace(LABELS_APART, ".gold")
    gold_path = existing_file(path.with_name(name), what="labels")
    text, gold = read_text(path), read_text(gold_path)
    if text.lstrip().startswith("["):  # MCL-WiC
        pairs = _json_list(text, path)
        tags = {label.text("id"): label.text("tag") for label in _json_list(gold, gold_path)}
        labels = [tags.get(pair.text("id"), "") for pair in pairs]
    else:
        pairs = [_from_row(path, *line) for line in numbered_lines(path) if line[1].strip()]
        labels = gold.split()
    if len(labels) != len(pairs) or "" in labels:
        raise Location(path=gold_path).error(
            f"not one label for each of the {len(pairs):,} pairs in {path}. Are both files whole?"
        )
    for pair, label in zip(pairs, labels, strict=True):
        yield Record(fields={**pair.fields, "label": label}, location=pair.location)


def _json_list(text: str, path: Path) -> list[Record]:
    rows = parse_json(text, list[dict[str, Any]], Location(path=path))
    return [
        Record(fields=fields, location=Location(path=path, part=f"[{number}]"))
        for number, fields in enumerate(rows)
    ]


def _from_row(path: Path, number: int, line: str) -> Record:
    """Return the record of a row of WiC: word, part of speech, places of words, two sentences."""
    location, row = Location(path=path, line=number), line.split("\t")
    places = row[2].split("-") if len(row) == 5 else []
    if len(places) != 2 or not all(place.isdecimal() for place in places):
        raise location.error(
            "expected word, part of speech, places such as 2-1, and two sentences, with tabs."
        )
    fields: dict[str, Any] = {"word": row[0]}
    for side, place, sentence in zip("12", map(int, places), row[3:], strict=True):
        words = sentence.split(" ")
        start = sum(len(word) + 1 for word in words[:place])
        end = start + len(words[place]) if place < len(words) else start
        fields |= {f"sentence{side}": sentence, f"start{side}": start, f"end{side}": end}
    return Record(fields=fields, location=location)


def _by_offsets(record: Record, side: int, report: ExampleReport) -> WordInContext | None:
    text = record.text(f"sentence{side}")
    start, end = record.value(f"start{side}", int), record.value(f"end{side}", int)
    return WordInContext(text=text, start=start, end=end) if 0 <= start < end <= len(text) else None


def _by_marks(record: Record, side: int, report: ExampleReport) -> WordInContext | None:
    before, _, rest = record.text(f"SENTENCE{side}").partition("[")
    word, closed, after = rest.partition("]")
    if not closed or not word.strip():
        return None
    report.repaired["several_targets"] += "[" in after
    text = before + word + after.replace("[", "").replace("]", "")
    return WordInContext(text=text, start=len(before), end=len(before) + len(word))
