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

    def pairs(path: Path, report: ExampleReport) -> Iterator[ContextPair]:
        for record in read_records(path):
            words = _by_offsets(record, "1"), _by_offsets(record, "2")
            yield from _pair(record, words, "lemma", "label", report)

    return read_examples(path, pairs, report)


def read_kobest_wic(path: StrPath, *, report: ExampleReport | None = None) -> Iterator[ContextPair]:
    """Yield pairs of KoBEST, where ``[ ]`` marks the word; the texts come without marks.

    Pairs with an unmarked text are skipped; the first of several marks counts.

    Raises:
        FileNotFoundError: at once, if there is no such file.
        FormatError: while reading, for missing or wrong fields, or a file without pairs.
    """

    def pairs(path: Path, report: ExampleReport) -> Iterator[ContextPair]:
        for record in read_records(path):
            texts = record.text("SENTENCE1"), record.text("SENTENCE2")
            words = _by_marks(texts[0], report), _by_marks(texts[1], report)
            yield from _pair(record, words, "Target", "ANSWER", report)

    return read_examples(path, pairs, report)


def _by_offsets(record: Record, number: str) -> WordInContext | None:
    text = record.text(f"sentence{number}")
    start, end = record.integer(f"start{number}"), record.integer(f"end{number}")
    if not 0 <= start < end <= len(text):
        return None
    return WordInContext(text=text, start=start, end=end)


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
    words: tuple[WordInContext | None, WordInContext | None],
    lemma: str,
    label: str,
    report: ExampleReport,
) -> Iterator[ContextPair]:
    """Yield the pair if the word is found in both texts."""
    (first, second), lemma, same_sense = words, record.text(lemma), record.truth(label)
    if first is None or second is None:
        report.skip("target_not_in_text", record.location)
        return
    yield ContextPair(
        lemma=lemma, first=first, second=second, same_sense=same_sense, location=record.location
    )
