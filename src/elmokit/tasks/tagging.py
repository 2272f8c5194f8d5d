"""Bases of tasks that tag each word, or spans of words."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from elmokit.files.location import Location
from elmokit.metrics.accuracy import accuracy_of, score_label_sequences
from elmokit.metrics.span_f1 import Span, SpanScore, f1_of, read_spans, score_tags
from elmokit.tasks.formats.conll import TaggedSentence
from elmokit.tasks.inputs.settings import InputSettings
from elmokit.tasks.networks.tagger import DROPOUT, CRFTagger, Tagger
from elmokit.tasks.sampling import sentences_of
from elmokit.tasks.task import Labels, Sentence, Task, TaskModel, TaskScore

Example = TypeVar("Example")


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
        return TaskScore(self.metric, report.accuracy, {}, report.counts)

    def example_of(self, *sentences: Sentence) -> Any:
        (tokens,) = sentences
        location = Location(path=Path("text"), line=1)
        return TaggedSentence(tokens=tokens, tags=("",) * len(tokens), location=location)

    def show(self, example: Any, prediction: list[str]) -> str:
        pairs = zip(example.tokens, prediction, strict=True)
        return " ".join(f"{word}/{tag}" for word, tag in pairs)

    def as_json(self, example: Any, prediction: list[str]) -> dict[str, Any]:
        return {"tokens": list(example.tokens), "tags": prediction}


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
        return TaskScore(self.metric, overall.f1, details, report.counts)

    def show(self, example: Any, prediction: list[str]) -> str:
        words = list(example.tokens)
        for span in read_spans(prediction):
            self.mark(words, span)
        return " ".join(words)

    def mark(self, words: list[str], span: Span) -> None:
        """Put brackets around a span, in place."""
        kind, start, end = span
        words[start] = f"[{words[start]}"
        words[end - 1] = f"{words[end - 1]} {kind}]"

    def as_json(self, example: Any, prediction: list[str]) -> dict[str, Any]:
        spans_name, type_name = self.field_names
        spans = [
            {type_name: kind, "start": start, "end": end,
             "text": " ".join(example.tokens[start:end])}
            for kind, start, end in read_spans(prediction)
        ]  # fmt: skip
        return {"tokens": list(example.tokens), spans_name: spans}
