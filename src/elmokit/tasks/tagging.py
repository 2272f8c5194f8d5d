"""Bases of tasks that tag each word, or spans of words."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from elmokit.errors import InputError
from elmokit.files.location import Location
from elmokit.metrics.accuracy import accuracy_of, score_label_sequences
from elmokit.metrics.span_f1 import Span, SpanScore, f1_of, read_spans, score_tags
from elmokit.tasks.formats.conll import TaggedSentence
from elmokit.tasks.inputs.settings import InputSettings
from elmokit.tasks.networks.tagger import DROPOUT, CRFTagger, Tagger
from elmokit.tasks.sampling import sentences_of
from elmokit.tasks.task import Labels, Sentence, Task, TaskModel, TaskScore
from elmokit.tasks.written import Mark, WrittenWords

Example = TypeVar("Example")


def check_tags_words(task: Task[Any], *, wanted: str) -> "TaggingTask[Any]":
    """Return the task; raise `InputError` with what was ``wanted`` if it does not tag words."""
    if isinstance(task, TaggingTask) and task.units != "characters":
        return task
    what = f"{task.name} with units=characters" if task.units == "characters" else task.name
    raise InputError(f"{wanted} is for tasks that tag words (pos, ner, srl), not for {what}.")


class TaggingTask(Task[Example]):
    """A task whose examples are sentences with ``tokens`` and ``tags``; scored by accuracy."""

    metric: ClassVar[str] = "accuracy"
    score_from_counts = staticmethod(accuracy_of)
    network: ClassVar[Callable[..., TaskModel]] = Tagger
    default_dropout: ClassVar[float] = DROPOUT
    paper_inputs: ClassVar[InputSettings] = InputSettings(dropout=0.0)  # the encoder has dropout
    divided_by = staticmethod(sentences_of)

    def sentences(self, example: Any) -> tuple[Sentence, ...]:
        return (example.tokens,)

    def gold(self, example: Any) -> list[str]:
        return list(example.tags)

    def labels(self, examples: Sequence[Any]) -> Labels:
        return sorted({tag for example in examples for tag in example.tags})

    def score(self, gold: Sequence[Any], predicted: Sequence[Any]) -> TaskScore:
        report = score_label_sequences(predicted, gold)
        return TaskScore(self.metric, report.accuracy, {}, report.by_label, report.counts)

    def lowercased(self, example: Any) -> Any:
        """Return an example with its words in lower case, for `units` other than characters."""
        return replace(example, tokens=tuple(word.lower() for word in example.tokens))

    def example_of(self, *sentences: Sentence) -> Any:
        (tokens,) = sentences
        location = Location(path=Path("text"), line=1)
        return TaggedSentence(tokens=tokens, tags=("",) * len(tokens), location=location)

    def as_given(self, example: Any, texts: Sequence[str]) -> Any:
        return replace(example, text=texts[0])

    def show(self, example: Any, prediction: list[str]) -> str:
        """Return ``word/TAG`` for each word."""
        words = WrittenWords(example.tokens, example.text).each()
        return " ".join(f"{word}/{tag}" for word, tag in zip(words, prediction, strict=True))

    def as_json(
        self, example: Any, prediction: list[str], probs: list[float] | None = None
    ) -> dict[str, Any]:
        """Return text, words and tags; ``probs`` are those of the tags."""
        written = WrittenWords(example.tokens, example.text)
        tokens = written.as_json()
        for number, token in enumerate(tokens):
            token["tag"] = prediction[number]
            token |= {} if probs is None else {"probability": probs[number]}
        return {"text": written.text, "tokens": tokens}


class SpanTaggingTask(TaggingTask[Example]):
    """A task whose tags, BIOUL by default, mark spans of words with a type; scored by F1."""

    metric: ClassVar[str] = "span F1"
    score_from_counts = staticmethod(f1_of)
    network: ClassVar[Callable[..., TaskModel]] = CRFTagger
    prefixes: ClassVar[str] = "BILU"
    """Of tags, in the order of their ids; O comes first."""
    field_names: ClassVar[tuple[str, str]] = ("spans", "type")
    """JSON names of the spans, and of a span's type."""

    def labels(self, examples: Sequence[Any]) -> Labels:
        types = {tag[2:] for example in examples for tag in example.tags if tag != "O"}
        return ["O", *(f"{prefix}-{kind}" for kind in sorted(types) for prefix in self.prefixes)]

    def shown_label(self, label: str) -> str:
        return label[2:]

    def score_spans(
        self, predicted: Sequence[Sequence[str]], gold: Sequence[Sequence[str]]
    ) -> SpanScore:
        """Compare the spans of predicted and gold tags."""
        return score_tags(predicted, gold)

    def score(self, gold: Sequence[Any], predicted: Sequence[Any]) -> TaskScore:
        report = self.score_spans(predicted, gold)
        overall = report.overall
        details = {"precision": overall.precision, "recall": overall.recall}
        return TaskScore(self.metric, overall.f1, details, report.by_type, report.counts)

    def show(self, example: Any, prediction: list[str]) -> str:
        """Return the text with brackets around the spans."""
        marks = [self.mark(span) for span in read_spans(prediction)]
        return self.place_words(example).marked(marks)

    def place_words(self, example: Any) -> WrittenWords:
        """Return the words with their places in the text that was given."""
        return WrittenWords(example.tokens, example.text)

    def mark(self, span: Span) -> Mark:
        """Return the brackets around a span."""
        kind, start, end = span
        return start, end, "[", f" {kind}]"

    def as_json(
        self, example: Any, prediction: list[str], probs: list[float] | None = None
    ) -> dict[str, Any]:
        """Return text, words and spans; ``probs`` are those of the spans."""
        written = self.place_words(example)
        spans_name, type_name = self.field_names
        spans = []
        for number, (kind, start, end) in enumerate(read_spans(prediction)):
            own = {} if probs is None else {"probability": probs[number]}
            spans.append({type_name: kind, **written.span(start, end), **own})
        return {"text": written.text, "tokens": written.as_json(), spans_name: spans}
