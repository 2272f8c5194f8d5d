"""Tasks whose answer is one label: for a text (sentiment, or any other), or a pair of texts.

Their files have records of texts with a label, or the sentiment trees of SST.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from pydantic import AliasChoices, BaseModel, Field, StrictInt, StrictStr

from elmokit.errors import InputError, Location
from elmokit.files.atomic import StrPath
from elmokit.files.lines import numbered_lines
from elmokit.files.sources import existing_file, plain_suffix
from elmokit.metrics.task_scores import accuracy_of, count_labels
from elmokit.tasks.formats.data_files import (
    DataFile,
    ExampleReport,
    read_examples,
    read_records,
    records_of,
)
from elmokit.tasks.frozen_tagger import WrittenWords
from elmokit.tasks.inputs.settings import InputSettings
from elmokit.tasks.task import Labels, Sentence, Task, TaskScore
from elmokit.text.given_sentences import Tokenize
from elmokit.text.normalization import TREEBANK_BRACKETS

MIN_PHRASE_TOKENS = 4
"""Length of the shortest phrases of a tree used for training, as in the paper."""
MAX_TEXT_WORDS = 10_000
"""Of a text; attention over that many takes 400 MB for each of several tensors."""

# The beginning of a node of a tree with its label, its end, or a word.
_TREE_PIECE = re.compile(r" *(?:\((?P<label>[0-4])(?= )|(?P<close>\))|(?P<word>[^() ]+)) *")


@dataclass(frozen=True, kw_only=True, slots=True)
class LabeledTexts:
    """A text or a pair of texts, none of them blank, and their class."""

    texts: tuple[str, ...]  # as they were written; the words of a tree joined by spaces
    sentences: tuple[tuple[str, ...], ...]
    label: str


def _check_length(sentence: tuple[str, ...]) -> tuple[str, ...]:
    if len(sentence) > MAX_TEXT_WORDS:
        raise InputError(
            f"The text has {len(sentence)} words; at most {MAX_TEXT_WORDS} are allowed."
        )
    return sentence


def column(*names: str) -> Any:
    """Return a field of a record: the first of these names that the record has."""
    return Field(validation_alias=AliasChoices(*names))


class TextRecord(BaseModel):
    """A text and its class."""

    text: str = column("text", "document", "sentence", "Text")
    label: StrictStr | StrictInt | None = column("label", "Label")


class PairRecord(BaseModel):
    """Two texts and their class."""

    premise: str = column("premise", "sentence1", "text", "Text")
    hypothesis: str = column("hypothesis", "sentence2", "Question")
    label: StrictStr | StrictInt | None = column("label", "gold_label", "Label", "Answer")


def read_labeled_texts(
    path: StrPath,
    tokenize: Tokenize,
    *,
    kind: type[BaseModel] = TextRecord,
    missing: Collection[str] = ("",),
) -> Iterator[LabeledTexts]:
    """Yield the records of a JSON-lines, TSV or CSV file: texts and, as the last field, a label.

    A record with a blank text is a fault; one whose label is ``missing`` is skipped without one.
    """

    def examples(path: Path, report: ExampleReport) -> Iterator[LabeledTexts]:
        for record in read_records(path):
            *written, label = (value for _, value in record.as_model(kind))
            class_label = "" if label is None else str(label).strip()
            if class_label in missing:
                report.skip("no_gold_label", record.location)
            elif not all(text.strip() for text in written):
                report.skip("empty_text", record.location)
            else:
                try:
                    words = tuple(_check_length(tuple(tokenize(text))) for text in written)
                except InputError as error:
                    raise record.location.error(str(error)) from error
                yield LabeledTexts(texts=tuple(written), sentences=words, label=class_label)

    return read_examples(path, examples)


def read_sentiment_trees(
    path: StrPath, *, min_phrase_tokens: int | None = None
) -> Iterator[LabeledTexts]:
    """Yield sentences of a file with one tree per line, ``(3 (2 It) (4 shines))``.

    With ``min_phrase_tokens``, every phrase of at least that length follows its sentence.
    """

    def examples(path: Path) -> Iterator[LabeledTexts]:
        for number, line in numbered_lines(path):
            if not line.strip(" "):
                continue
            tokens, nodes = _parse_tree(line, Location(path=path, line=number))
            for index, (label, start, end) in enumerate(nodes):
                is_long = min_phrase_tokens is not None and end - start >= min_phrase_tokens
                if index == 0 or is_long:  # node 0 is the sentence
                    words = tuple(tokens[start:end])
                    yield LabeledTexts(texts=(" ".join(words),), sentences=(words,), label=label)

    return read_examples(path, lambda path, _: examples(path))


def _parse_tree(line: str, location: Location) -> tuple[list[str], list[tuple[str, int, int]]]:
    """Return the words and ``(label, start, end)`` of each node, the root first."""
    # Not recursive: a tree may be as deep as its text is long.
    tokens: list[str] = []
    nodes: list[tuple[str, int, int]] = []
    open_nodes: list[int] = []
    at = 0
    while at < len(line) and (match := _TREE_PIECE.match(line, at)):
        # Outside of a node nothing but the first bracket is allowed: one tree per line.
        if not open_nodes and (nodes or not match["label"]):
            break
        at = match.end()
        if match["label"]:
            open_nodes.append(len(nodes))
            nodes.append((match["label"], len(tokens), len(tokens)))
        elif match["close"]:
            label, start, _ = nodes[open_nodes[-1]]
            if start == len(tokens):
                break  # a node without words
            nodes[open_nodes.pop()] = (label, start, len(tokens))
        else:
            # Treebank escapes: -LRB- is a bracket, \/ a slash.
            word = TREEBANK_BRACKETS.get(match["word"], match["word"])
            tokens.append(word.replace("\\/", "/").replace("\\*", "*"))
    if at < len(line) or open_nodes or not nodes:
        raise location.error(
            f"invalid sentiment tree at character {at}. Expected: one tree per line with labels 0 "
            "to 4, such as (3 (2 It) (4 shines))."
        )
    return tokens, nodes


class ClassificationTask(Task[LabeledTexts]):
    """A task whose examples have a ``label``; scored by accuracy."""

    metric = "accuracy"
    score_from_counts = staticmethod(accuracy_of)
    positions = ("input", "output", "both")
    record: ClassVar[type[BaseModel]]  # of a file
    missing: ClassVar[tuple[str, ...]] = ("",)  # in place of a label
    json_names: ClassVar[tuple[tuple[str, str], ...]]
    """JSON names of each text and of its words."""

    def read(self, path: Path, *, training: bool, tokenize: Tokenize) -> list[LabeledTexts]:
        return list(read_labeled_texts(path, tokenize, kind=self.record, missing=self.missing))

    def sentences(self, example: LabeledTexts) -> tuple[Sentence, ...]:
        return example.sentences

    def gold(self, example: LabeledTexts) -> str:
        return example.label

    def labels(self, examples: Sequence[LabeledTexts]) -> Labels:
        return sorted({example.label for example in examples})

    def score(self, gold: Sequence[Any], predicted: Sequence[Any]) -> TaskScore:
        return self.score_of(count_labels([[p] for p in predicted], [[g] for g in gold]))

    def example_of(self, *sentences: Sentence, texts: Sequence[str] | None = None) -> LabeledTexts:
        joined = [" ".join(_check_length(words)) for words in sentences]
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
    record = TextRecord
    json_names = (("text", "tokens"),)

    @staticmethod
    def divide(path: Path) -> DataFile:
        if not _has_trees(path):
            return records_of(path)
        return DataFile([[line] for _, line in numbered_lines(path) if line.strip()])

    def read(self, path: Path, *, training: bool, tokenize: Tokenize) -> list[LabeledTexts]:
        if not _has_trees(path):
            return super().read(path, training=training, tokenize=tokenize)
        phrases = MIN_PHRASE_TOKENS if training else None
        return list(read_sentiment_trees(path, min_phrase_tokens=phrases))


class NliTask(ClassificationTask):
    """Whether the first text entails the second: records of two texts and a label."""

    name, num_texts = "nli", 2
    network, default_dropout = "classifier.ESIM", 0.5
    # The paper does not say how it normalizes the layers; this norm is independent of the batch.
    paper_inputs = InputSettings(
        positions="both", characters=False, dropout=0.0, layer_norm="token"
    )
    default_hidden_dims = (300,)
    record = PairRecord
    missing = ("", "-", "-1")  # the annotators did not agree; -1 in copies of Hugging Face
    json_names = (("first", "first_tokens"), ("second", "second_tokens"))

    @staticmethod
    def divide(path: Path) -> DataFile:
        return records_of(path, lambda record: record.as_model(PairRecord).premise)


def _has_trees(path: Path) -> bool:
    if plain_suffix(path) != ".txt":
        return False
    path = existing_file(path, what="task data", is_read_twice=True)
    first = next((line for _, line in numbered_lines(path) if line.strip()), "")
    return "\t" not in first
