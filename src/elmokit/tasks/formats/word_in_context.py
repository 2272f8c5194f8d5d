"""The same word in two texts, and whether it means the same: MCL-WiC and KoBEST."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from elmokit.files.atomic import StrPath
from elmokit.files.location import Location
from elmokit.tasks.formats.reading import ExampleReport, read_examples
from elmokit.tasks.formats.records import Record, read_records


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


def read_wic(path: StrPath, *, report: ExampleReport | None = None) -> Iterator[ContextPair]:
    """Yield pairs of MCL-WiC: records of ``lemma, sentence1, start1, end1, sentence2, …, label``.

    Pairs with a span that is empty or outside its text are skipped.

    Raises:
        FileNotFoundError: at once, if there is no such file.
        FormatError: while reading, for missing or wrong fields, or a file without pairs.
    """
    return read_examples(path, _read_wic, report)


def read_kobest_wic(path: StrPath, *, report: ExampleReport | None = None) -> Iterator[ContextPair]:
    """Yield pairs of KoBEST, where ``[ ]`` marks the word; the texts come without marks.

    Pairs with an unmarked text are skipped; the first of several marks counts.

    Raises:
        FileNotFoundError: at once, if there is no such file.
        FormatError: while reading, for missing or wrong fields, or a file without pairs.
    """
    return read_examples(path, _read_kobest, report)


def _read_wic(path: Path, report: ExampleReport) -> Iterator[ContextPair]:
    for record in read_records(path):
        first, second = _by_offsets(record, "1"), _by_offsets(record, "2")
        yield from _pair(record, record.text("lemma"), (first, second), "label", report)


def _by_offsets(record: Record, number: str) -> WordInContext | None:
    text = record.text(f"sentence{number}")
    start, end = record.integer(f"start{number}"), record.integer(f"end{number}")
    if not 0 <= start < end <= len(text):
        return None
    return WordInContext(text=text, start=start, end=end)


def _read_kobest(path: Path, report: ExampleReport) -> Iterator[ContextPair]:
    for record in read_records(path):
        first = _by_marks(record.text("SENTENCE1"), report)
        second = _by_marks(record.text("SENTENCE2"), report)
        yield from _pair(record, record.text("Target"), (first, second), "ANSWER", report)


def _by_marks(marked: str, report: ExampleReport) -> WordInContext | None:
    before, opened, rest = marked.partition("[")
    word, closed, after = rest.partition("]")
    if not opened or not closed or not word.strip():
        return None
    if "[" in after:
        report.repaired["several_targets"] += 1
    text = before + word + after.replace("[", "").replace("]", "")
    return WordInContext(text=text, start=len(before), end=len(before) + len(word))


def _pair(
    record: Record,
    lemma: str,
    words: tuple[WordInContext | None, WordInContext | None],
    label: str,
    report: ExampleReport,
) -> Iterator[ContextPair]:
    """Yield the pair if the word is found in both texts."""
    first, second = words
    same_sense = record.truth(label)
    if first is None or second is None:
        report.skip("target_not_in_text", record.location)
        return
    yield ContextPair(
        lemma=lemma, first=first, second=second, same_sense=same_sense, location=record.location
    )
