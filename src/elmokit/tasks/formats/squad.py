"""Questions answered by a span of a paragraph: the JSON of SQuAD 1.1 and KorQuAD 1.0."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel

from elmokit.files.atomic import StrPath
from elmokit.files.lines import read_text
from elmokit.tasks.formats.reading import ExampleReport, SkipReason, read_examples
from elmokit.tasks.formats.records import parse_json
from elmokit.wording import Location


class Answer(BaseModel):
    """A span of the context: ``context[answer_start : answer_start + len(text)] == text``."""

    text: str
    answer_start: int


class Question(BaseModel):
    """A question about a paragraph, with the answers that people gave."""

    id: str
    question: str
    answers: list[Answer] = []
    is_impossible: bool = False


class Paragraph(BaseModel):
    """A text with questions."""

    context: str
    qas: list[Question]


class Article(BaseModel):
    """Paragraphs about one thing."""

    title: str = ""
    paragraphs: list[Paragraph]


class Document(BaseModel):
    """The whole file."""

    data: list[Article]


@dataclass(frozen=True, kw_only=True, slots=True)
class QuestionExample:
    """A question, its paragraph, and its human answers."""

    name: str
    """Its id."""
    question: str
    context: str
    answers: tuple[Answer, ...]
    """Those that are in the context, each at its place."""
    texts: tuple[str, ...]
    """Of all answers, for scoring."""


def read_squad(path: StrPath, *, scoring: bool = False) -> Iterator[QuestionExample]:
    """Yield the questions of all paragraphs; the questions of a paragraph share one string.

    Offsets count code points. An answer that is not at its offset is moved to the nearest match
    (``answer_moved``); one that is not in the context is dropped (``answer_dropped``), and a
    question without answers left is skipped; for ``scoring`` both are kept and count. Skipped are
    also the ``unanswerable`` ones of SQuAD 2.0, which are not a fault. The JSON is read as a whole.
    """
    return read_examples(path, lambda path, report: _read(path, report, scoring=scoring))


def _read(path: Path, report: ExampleReport, *, scoring: bool) -> Iterator[QuestionExample]:
    document: Document = parse_json(read_text(path), Document, Location(path=path))
    for number, article in enumerate(document.data):
        for row, paragraph in enumerate(article.paragraphs):
            for place, question in enumerate(paragraph.qas):
                example = _example(paragraph.context, question, report)
                if reason := _useless(question, example, scoring=scoring):
                    part = f"data[{number}].paragraphs[{row}].qas[{place}]"
                    report.skip(reason, Location(path=path, part=part))
                    continue
                num_dropped = len(question.answers) - len(example.answers)
                if num_dropped and not scoring:
                    report.repaired["answer_dropped"] += num_dropped
                yield example


def _useless(question: Question, example: QuestionExample, *, scoring: bool) -> SkipReason | None:
    if question.is_impossible:
        return "unanswerable"
    if not question.question.strip() or not example.context.strip():
        return "empty_text"
    if example.answers or (scoring and example.texts):
        return None
    return "answer_not_in_context" if question.answers else "no_answer"


def _example(context: str, question: Question, report: ExampleReport) -> QuestionExample:
    answers = []
    for answer in question.answers:
        start = _nearest(context, answer.text, answer.answer_start)
        if answer.text.strip() and start is not None:
            report.repaired["answer_moved"] += int(start != answer.answer_start)
            answers.append(Answer(text=answer.text, answer_start=start))
    return QuestionExample(
        name=question.id, question=question.question, context=context, answers=tuple(answers),
        texts=tuple(answer.text for answer in question.answers if answer.text.strip()),
    )  # fmt: skip


def _nearest(context: str, text: str, start: int) -> int | None:
    """Return the position of the text nearest to ``start``, the earlier one of two."""
    start = min(max(start, 0), len(context))
    before, after = context.rfind(text, 0, start + len(text)), context.find(text, start)
    places = [place for place in (before, after) if place >= 0]
    return min(places, key=lambda place: abs(place - start), default=None)
