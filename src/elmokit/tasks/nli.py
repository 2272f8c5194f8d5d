"""One label for two texts: entailment."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from elmokit.files.location import counted
from elmokit.files.sources import existing_file
from elmokit.tasks.classification import (
    ClassificationTask,
    check_length,
    read_at,
    with_probs,
)
from elmokit.tasks.formats.pairs import NLI_LABELS, TextPair, read_pairs
from elmokit.tasks.formats.records import first_named, read_records
from elmokit.tasks.inputs.settings import InputSettings
from elmokit.tasks.networks.esim import DROPOUT, ESIM
from elmokit.tasks.sampling import DataFile, records_of
from elmokit.tasks.task import Sentence, Tokenize
from elmokit.tasks.written import WrittenWords

log = logging.getLogger(__name__)

FIELDS = (
    ("premise", "sentence1", "text", "Text"),
    ("hypothesis", "sentence2", "Question"),
    ("label", "gold_label", "Label", "Answer"),
)  # fmt: skip
"""Possible names of the columns; the first that exists is used."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenizedPair:
    """Two texts as words, and what holds between them."""

    first: Sentence
    second: Sentence
    label: str
    texts: tuple[str, str]
    """The original texts."""


def _agreed(pairs: list[TextPair], path: Path) -> list[TextPair]:
    """Leave out pairs of the label -1 beside those of entailment: the annotators did not agree.

    Hugging Face's copies have it beside 0, 1 and 2.
    """
    labels = {pair.label for pair in pairs} - {"-1"}
    if labels != {"0", "1", "2"} and not (labels and labels <= set(NLI_LABELS)):
        return pairs  # -1 may be a class
    agreed = [pair for pair in pairs if pair.label != "-1"]
    if len(agreed) < len(pairs):
        num_others = counted(len(pairs) - len(agreed), "pair")
        log.warning("%s: %s of the label -1 (no agreement) left out", path, num_others)
    return agreed


class NliTask(ClassificationTask[TokenizedPair]):
    """Whether the first text entails the second: records of two texts and a label."""

    name, num_texts = "nli", 2
    network, default_dropout = ESIM, DROPOUT
    hub_tag = "text-classification"
    positions = ("input", "output", "both")
    # the paper does not say how it normalizes the layers; this norm is independent of the batch
    paper_inputs = InputSettings(
        positions="both", characters=False, dropout=0.0, layer_norm="token"
    )
    default_hidden_dims = (300,)

    @staticmethod
    def divided_by(path: Path) -> DataFile:
        """Divide a file into the pairs of each premise."""
        premise = first_named(read_records(path), FIELDS[0])
        return records_of(path, lambda record: record.text(premise))

    def read(self, path: Path, *, training: bool, tokenize: Tokenize) -> list[TokenizedPair]:
        existing_file(path, what="task data", is_read_twice=True)
        first, second, label = (first_named(read_records(path), wanted) for wanted in FIELDS)
        pairs = _agreed(
            list(read_pairs(path, first=first, second=second, label=label, labels=None)), path
        )
        return [
            TokenizedPair(
                first=read_at(pair.location, tokenize, pair.first),
                second=read_at(pair.location, tokenize, pair.second),
                label=pair.label,
                texts=(pair.first, pair.second),
            )
            for pair in pairs
        ]

    def sentences(self, example: TokenizedPair) -> tuple[Sentence, ...]:
        return (example.first, example.second)

    def example_of(self, *sentences: Sentence) -> TokenizedPair:
        first, second = map(check_length, sentences)
        texts = " ".join(first), " ".join(second)
        return TokenizedPair(first=first, second=second, label="", texts=texts)

    def as_given(self, example: TokenizedPair, texts: Sequence[str]) -> TokenizedPair:
        first, second = texts
        return replace(example, texts=(first, second))

    def show(self, example: TokenizedPair, prediction: str) -> str:
        return "\t".join((prediction, *example.texts))

    def as_json(
        self, example: TokenizedPair, prediction: str, probs: dict[str, float] | None = None
    ) -> dict[str, Any]:
        first, second = map(WrittenWords, self.sentences(example), example.texts)
        return {
            "first": first.text, "first_tokens": first.as_json(),
            "second": second.text, "second_tokens": second.as_json(),
            **with_probs(prediction, probs),
        }  # fmt: skip
