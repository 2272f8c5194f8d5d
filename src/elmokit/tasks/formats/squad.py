"""Questions answered by a span of a paragraph: the JSON of SQuAD 1.1 and KorQuAD 1.0."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel

from elmokit.files.atomic import StrPath
from elmokit.files.lines import read_text
from elmokit.tasks.formats.reading import ExampleReport, read_examples
from elmokit.tasks.formats.records import parse_json
from elmokit.wording import Location


class _Answer(BaseModel):
    text: str
    answer_start: int


class _Question(BaseModel):
    id: str
    question: str
    answers: list[_Answer] = []
    is_impossible: bool = False


class _Paragraph(BaseModel):
    context: str
    qas: list[_Question]


class _Article(BaseModel):
    title: str = ""
    paragraphs: list[_Paragraph]


class Document(BaseModel):
    """The whole file."""

    data: list[_Article]


@dataclass(frozen=True, kw_only=True, slots=True)
class QuestionExample:
    """A question, its paragraph, and its human answers."""

    name: str  # its id
    question: str
    context: str
    spans: tuple[tuple[int, int], ...]
    """Characters ``[start, end)`` of the answers that are in the context."""
    texts: tuple[str, ...]  # of all answers, for scoring


def read_squad(path: StrPath, *, scoring: bool = False) -> Iterator[QuestionExample]:
    """Yield the questions of all paragraphs; the questions of a paragraph share one string.

    An answer that is not at its offset (in code points) is moved to the nearest match; one that is
    not in the context is dropped, and a question without answers left is skipped; for ``scoring``
    both are kept and count. The ``unanswerable`` ones of SQuAD 2.0 are skipped, too.
    """
    return read_examples(path, lambda path, report: _read(path, report, scoring=scoring))


def _read(path: Path, report: ExampleReport, *, scoring: bool) -> Iterator[QuestionExample]:
    document: Document = parse_json(read_text(path), Document, Location(path=path))
    for number, article in enumerate(document.data):
        for row, paragraph in enumerate(article.paragraphs):
            for place, question in enumerate(paragraph.qas):
                spans = _find_answers(paragraph.context, question, report)
                texts = tuple(answer.text for answer in question.answers if answer.text.strip())
                if reason := _useless(paragraph.context, question, spans or (scoring and texts)):
                    part = f"data[{number}].paragraphs[{row}].qas[{place}]"
                    report.skip(reason, Location(path=path, part=part))
                    continue
                if not scoring:
                    report.repaired["answer_dropped"] += len(question.answers) - len(spans)
                yield QuestionExample(
                    name=question.id, question=question.question, context=paragraph.context,
                    spans=tuple(spans), texts=texts,
                )  # fmt: skip


def _useless(context: str, question: _Question, answers: object) -> str | None:
    """Return why a question is of no use, if it is none."""
    if question.is_impossible:
        return "unanswerable"
    if not question.question.strip() or not context.strip():
        return "empty_text"
    if answers:
        return None
    return "answer_not_in_context" if question.answers else "no_answer"


def _find_answers(
    context: str, question: _Question, report: ExampleReport
) -> list[tuple[int, int]]:
    """Return where the answers are, each at the match nearest to its offset, the earlier of two."""
    spans = []
    for answer in question.answers:
        text, wanted = answer.text, min(max(answer.answer_start, 0), len(context))
        matches = context.rfind(text, 0, wanted + len(text)), context.find(text, wanted)
        starts = [start for start in matches if start >= 0]
        if text.strip() and starts:
            start = min(starts, key=lambda start: abs(start - wanted))
            report.repaired["answer_moved"] += int(start != answer.answer_start)
            spans.append((start, start + len(text)))
    return spans
