"""Tasks whose answer is one label: for a text (sentiment, or any other), or a pair of texts."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from elmokit.errors import counted
from elmokit.files.lines import numbered_lines
from elmokit.files.sources import existing_file, plain_suffix
from elmokit.metrics.task_scores import accuracy_of, count_labels
from elmokit.tasks.formats.labeled_texts import (
    NLI_LABELS,
    LabeledTexts,
    check_length,
    read_labeled_texts,
    read_sentiment_trees,
)
from elmokit.tasks.formats.reading import first_named, read_records
from elmokit.tasks.frozen_tagger import WrittenWords
from elmokit.tasks.inputs.settings import InputSettings
from elmokit.tasks.sampling import DataFile, lines_of, records_of
from elmokit.tasks.task import Labels, Sentence, Task, TaskScore, Tokenize

log = logging.getLogger(__name__)

MIN_PHRASE_TOKENS = 4
"""Length of the shortest phrases of a tree used for training, as in the paper."""


class ClassificationTask(Task[LabeledTexts]):
    """A task whose examples have a ``label``; scored by accuracy."""

    metric, hub_tag = "accuracy", "text-classification"
    score_from_counts = staticmethod(accuracy_of)
    positions = ("input", "output", "both")
    text_fields: ClassVar[tuple[tuple[str, ...], ...]]
    """Possible names of the columns of each text; the first that exists is used."""
    label_fields: ClassVar[tuple[str, ...]]
    missing: ClassVar[tuple[str, ...]] = ("",)  # in place of a label
    json_names: ClassVar[tuple[tuple[str, str], ...]]
    """JSON names of each text and of its words."""

    def read(self, path: Path, *, training: bool, tokenize: Tokenize) -> list[LabeledTexts]:
        fields = {"texts": self.text_fields, "label": self.label_fields, "missing": self.missing}
        return list(read_labeled_texts(path, tokenize, **fields))

    def sentences(self, example: LabeledTexts) -> tuple[Sentence, ...]:
        return example.sentences

    def gold(self, example: LabeledTexts) -> str:
        return example.label

    def labels(self, examples: Sequence[LabeledTexts]) -> Labels:
        return sorted({example.label for example in examples})

    def score(self, gold: Sequence[Any], predicted: Sequence[Any]) -> TaskScore:
        return self.score_of(count_labels([[p] for p in predicted], [[g] for g in gold]))

    def example_of(self, *sentences: Sentence, texts: Sequence[str] | None = None) -> LabeledTexts:
        joined = [" ".join(check_length(words)) for words in sentences]
        return LabeledTexts(texts=tuple(texts or joined), sentences=sentences, label="")

    def show(self, example: LabeledTexts, prediction: str) -> str:
        return "\t".join((prediction, *example.texts))

    def as_json(
        self, example: LabeledTexts, prediction: str, probs: Mapping[str, float] | None = None
    ) -> dict[str, Any]:
        answer: dict[str, Any] = {}
        parts = zip(self.json_names, example.sentences, example.texts, strict=True)
        for (text_name, tokens_name), sentence, text in parts:
            words = WrittenWords(sentence, text)
            answer |= {text_name: words.text, tokens_name: words.as_json()}
        answer["label"] = prediction
        if probs is not None:
            answer |= {"probability": probs[prediction], "probabilities": dict(probs)}
        return answer


class SentimentTask(ClassificationTask):
    """Sentiment of a text: SST trees, or records of a text and its label.

    A ``.txt`` file has trees or a table: the first line of a table has tabs.
    """

    name = "sentiment"
    network, default_dropout = "classifier.BCN", 0.25
    paper_inputs = InputSettings(positions="both", characters=False)
    text_fields = (("text", "document", "sentence", "Text"),)
    label_fields = ("label", "Label")
    json_names = (("text", "tokens"),)

    @staticmethod
    def divided_by(path: Path) -> DataFile:
        return lines_of(path) if _has_trees(path) else records_of(path)

    def read(self, path: Path, *, training: bool, tokenize: Tokenize) -> list[LabeledTexts]:
        if _has_trees(path):
            phrases = MIN_PHRASE_TOKENS if training else None
            return list(read_sentiment_trees(path, min_phrase_tokens=phrases))
        return super().read(path, training=training, tokenize=tokenize)


class NliTask(ClassificationTask):
    """Whether the first text entails the second: records of two texts and a label."""

    name, num_texts = "nli", 2
    network, default_dropout = "classifier.ESIM", 0.5
    # The paper does not say how it normalizes the layers; this norm is independent of the batch.
    paper_inputs = InputSettings(
        positions="both", characters=False, dropout=0.0, layer_norm="token"
    )
    default_hidden_dims = (300,)
    text_fields = (
        ("premise", "sentence1", "text", "Text"),
        ("hypothesis", "sentence2", "Question"),
    )
    label_fields = ("label", "gold_label", "Label", "Answer")
    missing = ("", "-")  # the annotators did not agree
    json_names = (("first", "first_tokens"), ("second", "second_tokens"))

    @staticmethod
    def divided_by(path: Path) -> DataFile:
        premise = first_named(read_records(path), NliTask.text_fields[0])
        return records_of(path, lambda record: record.text(premise))

    def read(self, path: Path, *, training: bool, tokenize: Tokenize) -> list[LabeledTexts]:
        pairs = super().read(path, training=training, tokenize=tokenize)
        labels = {pair.label for pair in pairs} - {"-1"}
        if labels != {"0", "1", "2"} and not (labels and labels <= set(NLI_LABELS)):
            return pairs  # -1 may be a class
        # Beside the labels of entailment, Hugging Face's copies have it where annotators disagreed.
        agreed = [pair for pair in pairs if pair.label != "-1"]
        if len(agreed) < len(pairs):
            num_others = counted(len(pairs) - len(agreed), "pair")
            log.warning("%s: %s of the label -1 (no agreement) left out", path, num_others)
        return agreed


def _has_trees(path: Path) -> bool:
    if plain_suffix(path) != ".txt":
        return False
    path = existing_file(path, what="task data", is_read_twice=True)
    first = next((line for _, line in numbered_lines(path) if line.strip()), "")
    return "\t" not in first
