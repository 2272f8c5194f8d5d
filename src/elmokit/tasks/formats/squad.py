"""Questions answered by a span of a paragraph: the JSON of SQuAD 1.1 and KorQuAD 1.0."""

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
    """A span of the context."""

    text: str
    start: int
    """First character: ``context[start : start + len(text)] == text``."""


@dataclass(frozen=True, kw_only=True, slots=True)
class QuestionExample:
    """A question, its paragraph, and its human answers."""

    name: str
    """The id by which predictions are scored."""
    question: str
    context: str
    answers: tuple[Answer, ...]
    """Those that are in the context."""
    texts: tuple[str, ...]
    """Of all answers, for scoring."""
    location: Location


def read_squad(
    path: StrPath, *, report: ExampleReport | None = None, scoring: bool = False
) -> Iterator[QuestionExample]:
    """Yield the questions of all paragraphs; the questions of a paragraph share one string.

    Offsets count code points. An answer that is not at its offset is moved to the nearest match
    (``answer_moved``); one that is not in the context is dropped (``answer_dropped``), and a
    question without answers left is skipped; for ``scoring`` both are kept and count. Skipped are
    also the ``unanswerable`` ones of SQuAD 2.0, which are not a fault. The JSON is read as a whole.

    Raises:
        FileNotFoundError: at once, if there is no such file.
        FormatError: while reading, for invalid JSON, missing or wrong fields, a repeated id, or a
            file without questions.
    """
    return read_examples(path, lambda path, report: _read(path, report, scoring=scoring), report)


def _read(path: Path, report: ExampleReport, *, scoring: bool) -> Iterator[QuestionExample]:
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
                texts = tuple(text for one in given if (text := one.text("text")).strip())
                if record.fields.get("is_impossible") is True:
                    report.skip("unanswerable", record.location)
                elif not question.strip() or not context.strip():
                    report.skip("empty_text", record.location)
                elif not (kept or (scoring and texts)):
                    reason = "answer_not_in_context" if given else "no_answer"
                    report.skip(reason, record.location)
                else:
                    if len(kept) < len(given) and not scoring:
                        report.repaired["answer_dropped"] += len(given) - len(kept)
                    yield QuestionExample(
                        name=name, question=question, context=context, answers=kept,
                        texts=texts, location=record.location,
                    )  # fmt: skip


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
    """Return the position of the text nearest to ``start``, the earlier one of two."""
    start = min(max(start, 0), len(context))
    before, after = context.rfind(text, 0, start + len(text)), context.find(text, start)
    found = [position for position in (before, after) if position >= 0]
    return min(found, key=lambda position: abs(position - start), default=None)
