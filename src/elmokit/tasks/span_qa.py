"""Questions whose answer is a stretch of a paragraph: BiDAF with self-attention (DocQA).

The network is that of Clark and Gardner 2018 as Peters et al. 2018, appendix A.4 use it: word
vectors → shared biGRU → attention between question and context → linear layer → residual
self-attention → first and last word of the answer. ELMo stands at the input and at the output of
the first biGRU.

The network points at words, an answer is characters: `align_words` finds the characters of every
word, and answers are cut out of the untouched paragraph.
"""

import itertools
import logging
import random
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from elmokit.errors import FormatError, InputError
from elmokit.metrics.accuracy import check_same_length
from elmokit.metrics.squad import AnswerStyle, answer_f1_of, exact_match_of, score_answers
from elmokit.nn.attention import BiDAFAttention, SelfAttention
from elmokit.nn.encoder import SentenceEncoder, SentenceEncoderConfig, VariationalDropout
from elmokit.nn.spans import best_answers
from elmokit.tasks.base import Labels, Sentence, Task, TaskModel, TaskScore, Tokenize
from elmokit.tasks.formats.squad import read_squad
from elmokit.tasks.input_settings import InputSettings
from elmokit.tasks.inputs import TokenBatch, TokenInputs
from elmokit.tasks.word_offsets import Offsets, align_words, covering_words

log = logging.getLogger(__name__)

DROPOUT = 0.2
MAX_ANSWER_WORDS = 17
"""Of a predicted answer."""
MAX_TRAINING_WORDS = 400
"""Of a context in training; longer ones are cut to a window around the answer."""
MAX_CONTEXT_WORDS = 10_000
"""Of a context in prediction: self-attention takes 2.5 GB for so many words."""


_HANGUL = re.compile("[\u1100-\u11ff\u3131-\u318e\uac00-\ud7a3]")


@dataclass(frozen=True, kw_only=True, slots=True)
class QaExample:
    """A question and its context as words, and where the words and the answers stand."""

    name: str
    """The id of the question."""
    question: Sentence
    context_words: Sentence
    """Of a window of the context, if that is long and trained on."""
    offsets: Offsets
    """Of each context word, in ``context``; words that a tokenizer altered may share theirs."""
    context: str
    """As it was given; answers are cut out of it."""
    question_text: str
    """As it was given."""
    answers: tuple[str, ...] = ()
    """Gold, all of them right."""
    spans: Offsets = ()
    """``[start, end)`` in context words of the answers that have any; the first is learned."""


@dataclass(frozen=True, slots=True)
class GoldAnswers:
    """What an answer is compared with."""

    texts: tuple[str, ...]
    style: AnswerStyle
    """KorQuAD's where the question has Hangul."""


@dataclass(frozen=True, slots=True)
class FoundAnswer:
    """A stretch of the context."""

    text: str
    start: int
    """Of the first character, in the context."""
    end: int
    """After the last character."""
    score: float
    """Probability of the first word times that of the last; 0 where there is nothing to choose."""


class SpanQA(TaskModel):
    """Question and context → first and last word of the answer.

    Args:
        inputs: What is read at each word; with a mixture at the output if it has one.
        hidden_dims: Width of all biGRUs, one direction: one number. Linear layers have twice that.
        dropout: At the input and at the output of every biGRU (variational).

    Source: Clark and Gardner 2018; Peters et al. 2018, appendix A.4. Unlike there, weights are
    drawn as in all our encoders.
    """

    def __init__(
        self, inputs: TokenInputs, hidden_dims: tuple[int, ...], *, dropout: float = DROPOUT
    ) -> None:
        super().__init__()
        self.inputs = inputs
        if len(hidden_dims) != 1:
            raise ValueError(f"`hidden_dims` must be one width, got {hidden_dims}.")
        (hidden_dim,) = hidden_dims
        width = 2 * hidden_dim
        config = SentenceEncoderConfig(hidden_dims=hidden_dims, cell="gru", dropout=dropout)
        self.encoder = SentenceEncoder(inputs.output_dim, config)
        encoded = width + inputs.output_mix_dim
        self.attention = BiDAFAttention(encoded)
        self.to_width = nn.Linear(4 * encoded, width)
        self.self_encoder = SentenceEncoder(width, config)
        self.self_attention = SelfAttention(width)
        self.from_self = nn.Linear(3 * width, width)
        self.start_encoder = SentenceEncoder(width, config)
        self.to_start = nn.Linear(width, 1)
        self.end_encoder = SentenceEncoder(2 * width, config)
        self.to_end = nn.Linear(width, 1)
        self.dropout = VariationalDropout(dropout)

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw fresh weights."""
        self.inputs.reset_parameters(generator)
        for encoder in (self.encoder, self.self_encoder, self.start_encoder, self.end_encoder):
            encoder.reset_parameters(generator)
        self.attention.reset_parameters(generator)
        self.self_attention.reset_parameters(generator)
        for linear in (self.to_width, self.from_self, self.to_start, self.to_end):
            nn.init.xavier_uniform_(linear.weight, generator=generator)
            nn.init.zeros_(linear.bias)

    def loss(self, batches: Sequence[TokenBatch], examples: Sequence[Any]) -> Tensor:
        """Return the mean of -log p(first word) - log p(last word), and the mixtures' penalty.

        Every example must have a span, as those read for training do.
        """
        start_log_probs, end_log_probs = self._log_probs(*batches)
        starts = torch.tensor([example.spans[0][0] for example in examples])
        ends = torch.tensor([example.spans[0][1] - 1 for example in examples])
        loss = functional.nll_loss(start_log_probs, starts)
        return loss + functional.nll_loss(end_log_probs, ends) + self.inputs.penalty()

    def predict(self, batches: Sequence[TokenBatch], examples: Sequence[Any]) -> list[FoundAnswer]:
        """Return the best answer to each question; an empty one where the context is empty."""
        best = best_answers(
            *self._log_probs(*batches), batches[1].mask, max_length=MAX_ANSWER_WORDS
        )
        spans = zip(best.start.tolist(), best.end.tolist(), best.score.exp().tolist(), strict=True)
        return [
            _cut_out(example, start, end, score)
            for example, (start, end, score) in zip(examples, spans, strict=True)
        ]

    def _log_probs(self, question: TokenBatch, context: TokenBatch) -> tuple[Tensor, Tensor]:
        """Return the log-probability of each context word as the first and as the last: (B, N)."""
        mask = context.mask
        x = self.attention(self._encode(context), self._encode(question), mask, question.mask)
        x = torch.relu(self.to_width(x))  # (B, N, 2H)
        found = self.self_attention(self.dropout(self.self_encoder(x, mask)), mask)
        x = x + torch.relu(self.from_self(found))
        first = self.start_encoder(x, mask)
        last = self.end_encoder(torch.cat([first, x], dim=2), mask)
        return (
            _log_softmax(self.to_start(self.dropout(first)), mask),
            _log_softmax(self.to_end(self.dropout(last)), mask),
        )

    def _encode(self, batch: TokenBatch) -> Tensor:
        """Return the words of one text in their context, with the output mixture: (B, W, X)."""
        encoded = self.dropout(self.encoder(self.inputs(batch), batch.mask))
        return self.inputs.join_output(encoded, batch)


def _log_softmax(logits: Tensor, mask: Tensor) -> Tensor:
    """Turn scores (B, N, 1) into log-probabilities of the real positions (B, N)."""
    logits = logits.squeeze(2)
    return logits.masked_fill(~mask, torch.finfo(logits.dtype).min).log_softmax(dim=1)


def _cut_out(example: QaExample, start: int, end: int, score: float) -> FoundAnswer:
    """Return the answer that goes from the first to the last of some context words."""
    if start == end:
        return FoundAnswer("", 0, 0, 0.0)
    first, last = example.offsets[start][0], example.offsets[end - 1][1]
    return FoundAnswer(example.context[first:last], first, last, score)


@dataclass(frozen=True, slots=True)
class _Context:
    """A paragraph as words, shared by its questions."""

    words: Sentence
    offsets: Offsets
    trouble: str
    """Why it is of no use and has no words; empty if it is."""


class QaTask(Task[QaExample]):
    """Answers in a paragraph: SQuAD 1.1 and KorQuAD 1.0.

    The score follows the data, question by question: where the question has Hangul, answers are
    normalized as KorQuAD does and F1 counts characters; elsewhere as SQuAD does, and it counts
    words.
    """

    name, metric, num_texts = "qa", "F1", 2
    default_dropout = DROPOUT
    places = ("input", "output", "both")
    paper_inputs = InputSettings(places="both", layer_l2=0.0)

    @property
    def default_hidden_dims(self) -> tuple[int, ...]:
        """Widths of the recurrent layers, one direction."""
        return (90,)

    def read(self, path: Path, *, training: bool, tokenize: Tokenize) -> list[QaExample]:
        """Read questions with their gold answers; a context is one sequence of words.

        In training, long contexts are cut to a window around the answer, and questions are left out
        whose answer has no words or whose context cannot be aligned with its words. Otherwise all
        are kept: those without an aligned context, or with one of more than `MAX_CONTEXT_WORDS`,
        have no context words, so that they count as wrong. Either is logged, with numbers.

        Args:
            path: JSON as of SQuAD.
            training: Whether the examples are learned.
            tokenize: Makes words of a question, and of a whole context.

        Raises:
            FileNotFoundError: if there is no such file.
            FormatError: if it is damaged, or has no question that can be learned.
        """
        contexts: dict[str, _Context] = {}
        examples: list[QaExample] = []
        troubles: Counter[str] = Counter()
        num_read = 0
        for given in read_squad(path):
            num_read += 1
            if given.context not in contexts:
                contexts[given.context] = _read_context(given.context, tokenize, training)
            context = contexts[given.context]
            places = (
                covering_words(context.offsets, answer.start, answer.start + len(answer.text))
                for answer in given.answers
            )
            spans = tuple(place for place in places if place is not None)
            if context.trouble or not spans:
                troubles[context.trouble or "no word at the answer"] += 1
                if training:
                    continue
            example = QaExample(
                name=given.name,
                question=tuple(tokenize(given.question)),
                context_words=context.words,
                offsets=context.offsets,
                context=given.context,
                question_text=given.question,
                answers=tuple(answer.text for answer in given.answers),
                spans=spans,
            )
            examples.append(_window(example) if training else example)
        if troubles:
            reasons = ", ".join(f"{reason}: {count}" for reason, count in troubles.most_common())
            fate = "left out of training" if training else "without an answer to find, so wrong"
            log.warning(
                "%s: %d of %d questions are %s (%s)",
                path, troubles.total(), num_read, fate, reasons,
            )  # fmt: skip
            if not examples:
                raise FormatError(
                    f"{path}: none of {num_read} questions can be learned ({reasons}). The words "
                    "of the biLM's tokenizer must be those of the text: use another tokenizer."
                )
        return examples

    def sentences(self, example: QaExample) -> tuple[Sentence, ...]:
        """Return the words that the biLM reads: of the question, and of the context."""
        return example.question, example.context_words

    def gold(self, example: QaExample) -> GoldAnswers:
        """Return the right answers, and how they are compared."""
        korean = any(_HANGUL.search(word) for word in example.question)
        return GoldAnswers(example.answers, "korquad" if korean else "squad")

    def labels(self, examples: Sequence[QaExample]) -> Labels:
        """Return no labels: an answer is a place in the context."""
        return []

    def build(
        self, inputs: TokenInputs, labels: Labels, hidden_dims: tuple[int, ...], dropout: float
    ) -> SpanQA:
        """Build the network."""
        return SpanQA(inputs, hidden_dims, dropout=dropout)

    def score(self, gold: Sequence[Any], predicted: Sequence[Any]) -> TaskScore:
        """Compare predictions with gold: F1, and exact match among the details."""
        check_same_length(predicted, gold)
        counts = np.zeros((len(gold), 3))
        for style in get_args(AnswerStyle):
            rows = [row for row, answers in enumerate(gold) if answers.style == style]
            texts = [predicted[row].text for row in rows]
            right = [gold[row].texts for row in rows]
            counts[rows] = score_answers(texts, right, style=style).counts
        totals = counts.sum(axis=0)
        details = {"exact match": float(exact_match_of(totals))}
        return TaskScore(self.metric, float(answer_f1_of(totals)), details, counts)

    def example_of(self, *sentences: Sentence) -> QaExample:
        """Make an example of the words of a question and those of a context.

        The context is then these words, joined by single spaces.

        Raises:
            InputError: if there is not one question and one context, or the context is too long.
        """
        if len(sentences) != 2:
            raise InputError(
                f"A question is asked about a context: give the words of the two, got "
                f"{len(sentences)} texts."
            )
        question, words = sentences
        if len(words) > MAX_CONTEXT_WORDS:
            raise InputError(
                f"The context has {len(words)} words, allowed are {MAX_CONTEXT_WORDS}. Ask about "
                "one part of it at a time."
            )
        ends = list(itertools.accumulate(len(word) + 1 for word in words))  # after the space
        offsets = tuple(
            (end - 1 - len(word), end - 1) for word, end in zip(words, ends, strict=True)
        )
        return QaExample(
            name="", question=question, context_words=words, offsets=offsets,
            context=" ".join(words), question_text=" ".join(question),
        )  # fmt: skip

    def as_given(self, example: QaExample, texts: Sequence[str]) -> QaExample:
        """Return an example whose answer is cut out of the context as it stands there.

        If the words cannot be found in it, the context stays these words.
        """
        question, context = texts
        example = replace(example, question_text=question)
        offsets = align_words(example.context_words, context)
        return example if offsets is None else replace(example, context=context, offsets=offsets)

    def show(self, example: QaExample, prediction: FoundAnswer) -> str:
        """Return the answer as a person reads it."""
        return f"{prediction.text}\t{example.question_text}"

    def as_json(self, example: QaExample, prediction: FoundAnswer) -> dict[str, Any]:
        """Return the answer for machines; start and end count characters of the context."""
        return {
            "id": example.name,
            "question": example.question_text,
            "answer": prediction.text,
            "start": prediction.start,
            "end": prediction.end,
            "score": prediction.score,
        }


def _read_context(text: str, tokenize: Tokenize, training: bool) -> _Context:
    words = tuple(tokenize(text))
    offsets = align_words(words, text)
    if offsets is None:
        return _Context((), (), "words that are not those of the text")
    if not training and len(words) > MAX_CONTEXT_WORDS:
        return _Context((), (), f"more than {MAX_CONTEXT_WORDS} words")
    return _Context(words, offsets, "")


def _window(example: QaExample) -> QaExample:
    """Cut a long context to a window that holds the first answer, at a place drawn by the name."""
    start, end = example.spans[0]
    num_words = len(example.context_words)
    size = max(MAX_TRAINING_WORDS, end - start)
    if num_words <= size:
        return example
    lowest, highest = max(0, end - size), min(start, num_words - size)
    first = random.Random(example.name).randint(lowest, highest)
    last = first + size
    inside = (span for span in example.spans if first <= span[0] and span[1] <= last)
    return replace(
        example,
        context_words=example.context_words[first:last],
        offsets=example.offsets[first:last],
        spans=tuple((a - first, b - first) for a, b in inside),
    )
