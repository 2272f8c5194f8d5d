"""Questions whose answer is part of a paragraph, which the network points at."""

import logging
import random
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from elmokit.errors import InputError
from elmokit.metrics.squad import AnswerStyle, answer_f1_of, count_answers, exact_match_of
from elmokit.tasks.formats.squad import read_squad
from elmokit.tasks.inputs.settings import InputSettings
from elmokit.tasks.sampling import paragraphs_of
from elmokit.tasks.task import Labels, Sentence, Task, TaskScore, Tokenize
from elmokit.tasks.written import joined
from elmokit.text.alignment import Offsets, align, covering_words

log = logging.getLogger(__name__)

MAX_TRAINING_WORDS = 400
"""Of a context in training; longer ones are cut to a window around the answer."""
MAX_CONTEXT_WORDS = 10_000
"""Of a context in prediction; self-attention over that many takes 2.5 GB."""

_HANGUL = re.compile("[\u1100-\u11ff\u3131-\u318e\uac00-\ud7a3]")


@dataclass(frozen=True, kw_only=True, slots=True)
class QaExample:
    """A question and its context as words, with the places of words and answers."""

    name: str  # the id of the question
    question: Sentence
    context_words: Sentence  # in training, of a window of a long context
    offsets: Offsets
    """Of each context word, in ``context``; words altered by the tokenizer may share theirs."""
    context: str  # the original text, from which answers are cut
    question_text: str
    answers: tuple[str, ...] = ()  # gold alternatives
    spans: Offsets = ()
    """``[start, end)`` in context words of the answers that have any; training uses the first."""


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
    divided_by = staticmethod(paragraphs_of)
    network, default_dropout = "span_qa.SpanQA", 0.2
    encoder, hub_tag = "biGRU with attention", "question-answering"
    positions = ("input", "output", "both")
    paper_inputs = InputSettings(positions="both", layer_l2=0.0)
    default_hidden_dims = (90,)

    def read(self, path: Path, *, training: bool, tokenize: Tokenize) -> list[QaExample]:
        """Read questions with their gold answers; a context is one sequence of words.

        In training, long contexts are cut to a window around the answer, and questions without
        words at the answer are left out. In scoring, every question and every gold answer counts;
        contexts that cannot be aligned or are too long have no words, so their answers are wrong.
        """
        contexts: dict[str, tuple[Sentence, Offsets, str]] = {}
        examples: list[QaExample] = []
        troubles: Counter[str] = Counter()
        num_read = 0
        for question in read_squad(path, scoring=not training):
            num_read += 1
            text = question.context
            if text not in contexts:
                contexts[text] = _read_context(text, tokenize, training)
            words, offsets, trouble = contexts[text]
            covering = (covering_words(offsets, *span) for span in question.spans)
            example = QaExample(
                name=question.name, question=tuple(tokenize(question.question)),
                context_words=words, offsets=offsets, context=text,
                question_text=question.question, answers=question.texts,
                spans=tuple(span for span in covering if span is not None),
            )  # fmt: skip
            if trouble or not example.spans:
                troubles[trouble or "no word at the answer"] += 1
                if training:
                    continue
            examples.append(_window(example) if training else example)
        if troubles:
            reasons = ", ".join(f"{reason}: {count}" for reason, count in troubles.most_common())
            fate = "left out of training" if training else "without an answer to find, so wrong"
            counts = troubles.total(), num_read
            log.warning("%s: %d of %d questions are %s (%s)", path, *counts, fate, reasons)
        return examples

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


def _read_context(text: str, tokenize: Tokenize, training: bool) -> tuple[Sentence, Offsets, str]:
    """Return words and offsets of a paragraph; none, and the reason, if it cannot be used."""
    words = tuple(tokenize(text))
    offsets = align(words, text)
    if offsets is None:
        return (), (), "words that are not those of the text"
    if not training and len(words) > MAX_CONTEXT_WORDS:
        return (), (), f"more than {MAX_CONTEXT_WORDS} words"
    return words, offsets, ""


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
