"""Questions whose answer is part of a paragraph, which the network points at."""

import json
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel

from elmokit.errors import InputError, Location
from elmokit.files.lines import read_text
from elmokit.metrics.task_scores import AnswerStyle, answer_f1_of, count_answers, exact_match_of
from elmokit.tasks.formats.data_files import DataFile, ExampleReport, parse_json, read_examples
from elmokit.tasks.frozen_tagger import joined
from elmokit.tasks.inputs.settings import InputSettings
from elmokit.tasks.task import Labels, Sentence, Task, TaskScore, Tokenize
from elmokit.text.alignment import Offsets, align, covering_words

MAX_TRAINING_WORDS = 400
"""Of a context in training; longer ones are cut to a window around the answer."""
MAX_CONTEXT_WORDS = 10_000
"""Of a context in prediction; self-attention over that many takes 2.5 GB."""

_HANGUL = re.compile("[\u1100-\u11ff\u3131-\u318e\uac00-\ud7a3]")


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
class QaExample:
    """A question and its context as words, with the places of words and answers."""

    name: str  # the id of the question
    question: Sentence
    context_words: Sentence  # in training, of a window of a long context
    offsets: Offsets
    """Of each context word, in ``context``; words altered by the tokenizer may share theirs."""
    context: str  # the original text, from which answers are cut; one string for its questions
    question_text: str
    answers: tuple[str, ...] = ()  # gold alternatives
    spans: Offsets = ()
    """``[start, end)`` in context words of the answers that have any; training uses the first."""


def _read(
    path: Path, report: ExampleReport, tokenize: Tokenize, *, training: bool
) -> Iterator[QaExample]:
    document: Document = parse_json(read_text(path), Document, Location(path=path))
    for number, article in enumerate(document.data):
        for row, paragraph in enumerate(article.paragraphs):
            context = paragraph.context
            words, offsets = _read_context(context, tokenize, training=training)
            for place, question in enumerate(paragraph.qas):
                spans = _find_answers(context, question, report)
                covering = (covering_words(offsets, *span) for span in spans)
                texts = (answer.text for answer in question.answers)
                example = QaExample(
                    name=question.id, question=tuple(tokenize(question.question)),
                    context_words=words, offsets=offsets, context=context,
                    question_text=question.question, answers=tuple(filter(str.strip, texts)),
                    spans=tuple(span for span in covering if span is not None),
                )  # fmt: skip
                reason = _useless(example, question, bool(spans), training=training)
                if reason is not None:
                    part = f"data[{number}].paragraphs[{row}].qas[{place}]"
                    report.skip(reason, Location(path=path, part=part))
                elif training:
                    report.noted["answer_dropped"] += len(question.answers) - len(spans)
                    yield _window(example)
                else:
                    report.noted["cannot_be_answered"] += not example.spans
                    yield example


def _read_context(text: str, tokenize: Tokenize, *, training: bool) -> tuple[Sentence, Offsets]:
    """Return words and offsets of a paragraph; none if it cannot be used."""
    words = tuple(tokenize(text))
    offsets = align(words, text)
    if offsets is None or (not training and len(words) > MAX_CONTEXT_WORDS):
        return (), ()
    return words, offsets


def _useless(
    example: QaExample, question: _Question, has_spans: bool, *, training: bool
) -> str | None:
    """Return why a question is of no use, if it is none."""
    if question.is_impossible:
        return "unanswerable"
    if not question.question.strip() or not example.context.strip():
        return "empty_text"
    if not has_spans and (training or not example.answers):
        return "answer_not_in_context" if question.answers else "no_answer"
    return "no_word_at_the_answer" if training and not example.spans else None


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
            report.noted["answer_moved"] += int(start != answer.answer_start)
            spans.append((start, start + len(text)))
    return spans


def paragraphs_of(path: Path) -> DataFile:
    """Divide JSON in the layout of SQuAD into paragraphs, each with all its questions."""
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


@dataclass(frozen=True, slots=True)
class FoundAnswer:
    """Part of the context; ``[start, end)`` in characters."""

    text: str
    start: int
    end: int
    probability: float
    """Probability of the first word times that of the last; 0 in an empty context."""


class GoldAnswers(NamedTuple):
    """Correct answers, and how to compare with them."""

    texts: tuple[str, ...]
    style: AnswerStyle


class QaTask(Task[QaExample]):
    """Answers in a paragraph: SQuAD 1.1 and KorQuAD 1.0.

    Questions with Hangul are scored as in KorQuAD (F1 over characters), others as in SQuAD.
    """

    name, metric, num_texts = "qa", "F1", 2
    score_from_counts = staticmethod(answer_f1_of)
    divide = staticmethod(paragraphs_of)
    network, default_dropout = "span_qa.SpanQA", 0.2
    positions = ("input", "output", "both")
    paper_inputs = InputSettings(positions="both", layer_l2=0.0)
    default_hidden_dims = (90,)

    def read(self, path: Path, *, training: bool, tokenize: Tokenize) -> list[QaExample]:
        """Read questions with their gold answers; a context is one sequence of words.

        An answer that is not at its offset (in code points) is moved to the nearest match. In
        training, answers that are not in the context, and questions without words at an answer, are
        left out, and long contexts are cut to a window around the answer. In scoring, every
        question and every gold answer counts; contexts that cannot be aligned or are too long have
        no words, so their answers are wrong. ``unanswerable`` questions of SQuAD 2.0 are skipped.
        """
        return list(read_examples(path, partial(_read, tokenize=tokenize, training=training)))

    def sentences(self, example: QaExample) -> tuple[Sentence, ...]:
        return example.question, example.context_words

    def sampling_unit(self, example: QaExample) -> str:
        return example.context  # a paragraph has several questions

    def gold(self, example: QaExample) -> GoldAnswers:
        korean = any(_HANGUL.search(word) for word in example.question)
        return GoldAnswers(example.answers, "korquad" if korean else "squad")

    def labels(self, examples: Sequence[QaExample]) -> Labels:
        return []

    def score(self, gold: Sequence[Any], predicted: Sequence[Any]) -> TaskScore:
        counts = count_answers([answer.text for answer in predicted], gold)
        totals = counts.sum(axis=0)
        details = {"exact match": float(exact_match_of(totals))}
        return TaskScore(self.metric, float(answer_f1_of(totals)), details, counts=counts)

    def example_of(self, *sentences: Sentence, texts: Sequence[str] | None = None) -> QaExample:
        question, words = sentences
        if len(words) > MAX_CONTEXT_WORDS:
            raise InputError(
                f"The context has {len(words)} words; at most {MAX_CONTEXT_WORDS} are allowed. Ask "
                "about one part of it at a time."
            )
        question_text, context = texts or (" ".join(question), " ".join(words))
        offsets = align(words, context) if texts else None
        if offsets is None:
            context, offsets = joined(words)
        return QaExample(
            name="", question=question, context_words=words, offsets=offsets, context=context,
            question_text=question_text,
        )  # fmt: skip

    def show(self, example: QaExample, prediction: FoundAnswer) -> str:
        return f"{prediction.text}\t{example.question_text}"

    def as_json(
        self, example: QaExample, prediction: FoundAnswer, probs: None = None
    ) -> dict[str, Any]:
        name = {"id": example.name} if example.name else {}
        return {
            **name, "question": example.question_text, "context": example.context,
            "answer": prediction.text, "start": prediction.start, "end": prediction.end,
            "probability": prediction.probability,
        }  # fmt: skip


def _window(example: QaExample) -> QaExample:
    """Cut a long context to a window around the first answer, at a random place seeded by name."""
    start, end = example.spans[0]
    num_words = len(example.context_words)
    size = max(MAX_TRAINING_WORDS, end - start)
    if num_words <= size:
        return example
    # Anywhere around the answer: a network would learn where it stands in the window.
    lowest, highest = max(0, end - size), min(start, num_words - size)
    first = random.Random(example.name).randint(lowest, highest)
    last = first + size
    inside = (span for span in example.spans if first <= span[0] and span[1] <= last)
    spans = tuple((a - first, b - first) for a, b in inside)
    words, offsets = example.context_words[first:last], example.offsets[first:last]
    return replace(example, context_words=words, offsets=offsets, spans=spans)
