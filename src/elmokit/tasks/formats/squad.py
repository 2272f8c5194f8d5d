"""Questions about a paragraph whose answers stand in it: the JSON of SQuAD 1.1 and KorQuAD 1.0."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from elmokit.files.atomic import StrPath
from elmokit.files.lines import read_text
from elmokit.files.location import Location, shown
from elmokit.tasks.formats.reading import ExampleReport, read_examples
from elmokit.tasks.formats.records import Record


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """Words of the context."""

    text: str
    start: int
    """Of the first character in the context; ``context[start:start + len(text)] == text``."""


@dataclass(frozen=True, kw_only=True, slots=True)
class QuestionExample:
    """A question, the paragraph it is about, and the answers people gave (at least one)."""

    name: str
    """The id, under which a prediction is scored."""
    question: str
    context: str
    answers: tuple[Answer, ...]
    location: Location


def read_squad(path: StrPath, *, report: ExampleReport | None = None) -> Iterator[QuestionExample]:
    """Yield the questions of all paragraphs; a paragraph is one string, shared by its questions.

    Offsets count characters (code points). Where an answer does not stand at its offset, the
    nearest place where it does is taken (``answer_moved``); where the context lacks it, it is left
    out (``answer_dropped``), and with its last answer the question is skipped.

    Args:
        path: A JSON document, plain or compressed. It is read as a whole.
        report: Counts what is read, moved and skipped.

    Raises:
        FileNotFoundError: at once, if there is no such file.
        FormatError: while reading, for text that is no JSON, missing or wrong fields, an id that
            occurs twice, and a file without questions.
    """
    return read_examples(path, _read, report)


def _read(path: Path, report: ExampleReport) -> Iterator[QuestionExample]:
    names: set[str] = set()
    document = Record.from_json(read_text(path), Location(path=path))
    for article in document.records("data"):
        for paragraph in article.records("paragraphs"):
            context = paragraph.text("context")
            for record in paragraph.records("qas"):
                name = record.text("id")
                if name in names:
                    raise record.location.error(
                        f"the id {shown(name)} occurs twice; predictions are scored by it."
                    )
                names.add(name)
                question = record.text("question")
                given = record.records("answers")
                answers = [_answer(one, context, report) for one in given]
                kept = tuple(answer for answer in answers if answer is not None)
                if not question.strip() or not context.strip():
                    report.skip("empty_text", record.location)
                elif not kept:
                    reason = "answer_not_in_context" if given else "no_answer"
                    report.skip(reason, record.location)
                else:
                    if len(kept) < len(given):
                        report.repaired["answer_dropped"] += len(given) - len(kept)
                    yield QuestionExample(
                        name=name,
                        question=question,
                        context=context,
                        answers=kept,
                        location=record.location,
                    )


def _answer(record: Record, context: str, report: ExampleReport) -> Answer | None:
    text, start = record.text("text"), record.integer("answer_start")
    if not text.strip():
        return None
    if start >= 0 and context.startswith(text, start):
        return Answer(text=text, start=start)
    found = _nearest(context, text, start)
    if found is None:
        return None
    report.repaired["answer_moved"] += 1
    return Answer(text=text, start=found)


def _nearest(context: str, text: str, start: int) -> int | None:
    """Return where the text stands nearest to ``start``, the earlier one of two."""
    start = min(max(start, 0), len(context))
    before, after = context.rfind(text, 0, start + len(text)), context.find(text, start)
    found = [location for location in (before, after) if location >= 0]
    return min(found, key=lambda location: abs(location - start)) if found else None
