"""One label for a whole text: sentiment, or any other.

A ``.txt`` file has trees or a table: the first line of a table has tabs.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from elmokit.files.location import Location
from elmokit.files.sources import existing_file, plain_suffix
from elmokit.tasks.classification import (
    ClassificationTask,
    check_length,
    read_at,
    with_probs,
)
from elmokit.tasks.formats.records import first_line, first_named, read_records
from elmokit.tasks.formats.text_labels import LabeledText, read_sentiment_trees, read_text_labels
from elmokit.tasks.inputs.settings import InputSettings
from elmokit.tasks.networks.bcn import BCN, DROPOUT
from elmokit.tasks.sampling import DataFile, lines_of, records_of
from elmokit.tasks.task import Sentence, Tokenize
from elmokit.tasks.written import WrittenWords

TEXT_FIELDS, LABEL_FIELDS = ("text", "document", "sentence", "Text"), ("label", "Label")
"""Possible names of the columns; the first that exists is used."""
MIN_PHRASE_TOKENS = 4
"""Length of the shortest phrases of a tree used for training, as in the paper."""


class SentimentTask(ClassificationTask[LabeledText]):
    """Sentiment of a text: SST trees, or records of a text and its label."""

    name = "sentiment"
    network, default_dropout = BCN, DROPOUT
    hub_tag = "text-classification"
    positions = ("input", "output", "both")
    paper_inputs = InputSettings(positions="both", characters=False)

    @staticmethod
    def divided_by(path: Path) -> DataFile:
        """Divide a file into its texts."""
        if _has_trees(path):
            return lines_of(path)
        return records_of(path)

    def read(self, path: Path, *, training: bool, tokenize: Tokenize) -> list[LabeledText]:
        existing_file(path, what="task data", is_read_twice=True)
        if _has_trees(path):
            phrases = MIN_PHRASE_TOKENS if training else None
            return list(read_sentiment_trees(path, min_phrase_tokens=phrases))
        fields = TEXT_FIELDS, LABEL_FIELDS
        text, label = (first_named(read_records(path), names) for names in fields)
        examples = read_text_labels(path, text=text, label=label)
        return [
            replace(example, tokens=read_at(example.location, tokenize, example.text))
            for example in examples
        ]

    def sentences(self, example: LabeledText) -> tuple[Sentence, ...]:
        assert example.tokens is not None
        return (example.tokens,)

    def example_of(self, *sentences: Sentence) -> LabeledText:
        (tokens,) = map(check_length, sentences)
        location = Location(path=Path("text"), line=1)
        return LabeledText(text=" ".join(tokens), label="", tokens=tokens, location=location)

    def as_given(self, example: LabeledText, texts: Sequence[str]) -> LabeledText:
        return replace(example, text=texts[0])

    def show(self, example: LabeledText, prediction: str) -> str:
        return f"{prediction}\t{example.text}"

    def as_json(
        self, example: LabeledText, prediction: str, probs: dict[str, float] | None = None
    ) -> dict[str, Any]:
        written = WrittenWords(self.sentences(example)[0], example.text)
        answer = with_probs(prediction, probs)
        return {"text": written.text, "tokens": written.as_json(), **answer}


def _has_trees(path: Path) -> bool:
    return plain_suffix(path) == ".txt" and "\t" not in first_line(path)[1]
