"""What a task must offer: read, build, loss, predict, score, show; its texts and words."""

import logging
import random
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, TypeVar

import numpy as np

from elmokit.errors import InputError, shown
from elmokit.metrics.task_scores import Counts, LabelCounts, PrecisionRecall
from elmokit.tasks.formats.data_files import DataFile, find_split
from elmokit.tasks.inputs.layer_cache import Sentence
from elmokit.tasks.inputs.settings import InputSettings, MixPositions
from elmokit.tasks.registry import find_task
from elmokit.text.given_sentences import Tokenize, split_sentence
from elmokit.text.tokenizers.protocol import NormalizingTokenizer, Tokenizer
from elmokit.text.tokenizers.registry import build_tokenizer
from elmokit.weights.locate import find_model
from elmokit.weights.model_files import read_config

Example = TypeVar("Example")
Labels = list[str]
Widths = tuple[int, ...]  # of recurrent layers, one direction
Units = Literal["words", "morphemes", "characters"]
"""What a token of the data is: a written word, a morpheme, or a character of the text."""
Answer = tuple[Any, Callable[[], Any]]
"""A prediction, and a function that computes what `Task.as_json` shows of its probabilities."""


def no_probs() -> None:
    """Stand in for the probabilities of a prediction that has none, or has its own."""


@dataclass(frozen=True)
class TaskScore:
    """Agreement of predictions with gold answers."""

    metric: str
    value: float  # of the metric, in percent
    details: dict[str, float] = field(default_factory=dict)  # further numbers, by name
    by_label: Mapping[str, PrecisionRecall] = field(default_factory=dict)
    """Figures of each type of span, tag or label, where the task has them."""
    counts: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    """(num_examples, k), whose sum determines ``value``; for significance tests."""
    sampling_units: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """(num_examples,): numbers of `Task.sampling_unit`; empty until `score_model` sets it."""


class Task(ABC, Generic[Example]):
    """Everything about a task except the training loop, the biLM and files of runs."""

    name: ClassVar[str]  # as in `elmokit.tasks.registry`
    metric: ClassVar[str]  # of `score`
    network: ClassVar[str]
    """Module of `elmokit.tasks.networks` and class: ``tagger.Tagger``; it needs PyTorch."""
    block: ClassVar[int] = 1
    """Neighboring units that are held out together; above 1 where they are of one document."""
    positions: ClassVar[tuple[MixPositions, ...]] = ("input",)
    """Where the network can read mixtures of layers."""
    all_units: ClassVar[tuple[Units, ...]] = ("words",)  # possible units of the data
    paper_inputs: ClassVar[InputSettings] = InputSettings()
    """Inputs of the network in the paper."""
    num_texts: ClassVar[int] = 1  # texts of one example; in raw text they are separated by tabs
    suffixes: ClassVar[tuple[str, ...]] = ()
    """Endings of the task's files, if a data set has others of the same name."""
    batched_by: ClassVar[Literal["text", "document"]] = "text"
    """``text``: the first texts of all examples make one batch, the second ones another.
    ``document``: an example has any number of sentences, which are batched among themselves."""
    default_hidden_dims: ClassVar[Widths] = (200,)
    default_dropout: ClassVar[float]  # of the network, as in its paper (``pos``: our own)
    default_batch_size: ClassVar[int] = 32
    labels_are_answers: ClassVar[bool] = True
    """False: labels are inputs, such as genres, and may be new in other data."""

    def __init__(self, *, units: Units = "words") -> None:
        self.units: Units = units

    @staticmethod
    @abstractmethod
    def score_from_counts(totals: Counts) -> Counts:
        """Return the main number from summed rows of `TaskScore.counts`: (..., k) -> (...)."""

    @staticmethod
    @abstractmethod
    def divide(path: Path) -> DataFile:
        """Divide a data file into units that a smaller data set keeps whole."""

    def in_units(self, units: Units) -> "Task[Example]":
        """Return the task for data in these units; InputError if it has no such."""
        if units not in self.all_units:
            raise InputError(
                f"units={units!r}: not for the task {self.name}, whose data come in units of "
                f"{' or '.join(self.all_units)}."
            )
        return type(self)(units=units)

    @abstractmethod
    def read(self, path: Path, *, training: bool, tokenize: Tokenize) -> list[Example]:
        """Read the examples of a file; those for training may differ (phrases of a tree).

        ``tokenize`` splits texts into words where the format does not.
        """

    @abstractmethod
    def sentences(self, example: Example) -> tuple[Sentence, ...]:
        """Return the sentences that the biLM reads."""

    def words(self, examples: Iterable[Example]) -> Iterator[str]:
        for example in examples:
            for sentence in self.sentences(example):
                yield from sentence

    def sampling_unit(self, example: Example) -> Hashable:
        """Return what an example shares with others; significance tests draw it as a whole."""
        return self.sentences(example)[0]

    def number_sampling_units(self, examples: Sequence[Example]) -> np.ndarray:
        """Return the number of each example's sampling unit, in order of first appearance."""
        numbers: dict[Hashable, int] = defaultdict(lambda: len(numbers))
        return np.array([numbers[self.sampling_unit(one)] for one in examples], dtype=np.int64)

    @abstractmethod
    def gold(self, example: Example) -> Any:
        """Return the answer that the network's ``predict`` should give."""

    def in_units_of_gold(self, example: Example, prediction: Any) -> Any:
        """Return a prediction as `gold` has it, if the data have other tokens than the model."""
        return prediction

    @abstractmethod
    def labels(self, examples: Sequence[Example]) -> Labels:
        """Return all labels, in the order of their ids."""

    def shown_label(self, label: str) -> str:
        """Return a label as messages name it; of the tag of a span, the type."""
        return label

    @abstractmethod
    def score(self, gold: Sequence[Any], predicted: Sequence[Any]) -> TaskScore:
        """Compare predictions with gold."""

    def score_of(self, counts: LabelCounts) -> TaskScore:
        """Return the score that follows from counts of labels or spans."""
        value = float(self.score_from_counts(counts.rows.sum(axis=0)))
        return TaskScore(self.metric, value, {}, counts.by_label, counts.rows)

    @abstractmethod
    def example_of(self, *sentences: Sentence, texts: Sequence[str] | None = None) -> Example:
        """Make an example without a gold answer; ``texts`` are as they were written, if known."""

    def part(self, example: Example, draw: random.Random) -> Example:
        """Return the part of an example that one update reads, made of its sentences."""
        return example

    def from_text(self, text: str, tokenizer: Tokenizer) -> Example:
        """Make an example of a line of raw text."""
        texts = text.split("\t") if self.num_texts > 1 else [text]
        return self.from_texts(texts, tokenizer.tokenize, self.num_texts)

    def from_words(self, words: Sequence[Any], tokenize: Tokenize) -> Example:
        """Make an example of a list of words; of several texts, a list with each of them.

        A text among several may be a string, which ``tokenize`` splits.
        """
        texts = [words] if self.num_texts == 1 else list(words)
        return self.from_texts(texts, tokenize, self.num_texts)

    def from_texts(self, texts: Sequence[Any], tokenize: Tokenize, number: int) -> Example:
        """Make an example of this ``number`` of texts, each a string or a list of words."""
        if len(texts) != number:
            raise InputError(
                f"The task {self.name} needs {number} texts, separated by tabs in a line, in "
                f"Python a list of strings or lists of words, got {len(texts)}: "
                f"{shown(texts[0] if len(texts) == 1 else texts)}."
            )
        sentences = [tuple(split_sentence(text, tokenize, where="it")) for text in texts]
        originals = None
        if any(isinstance(text, str) for text in texts):
            originals = [text if isinstance(text, str) else " ".join(text) for text in texts]
        return self.example_of(*sentences, texts=originals)

    @abstractmethod
    def show(self, example: Example, prediction: Any) -> str:
        """Return a prediction for people."""

    @abstractmethod
    def as_json(self, example: Example, prediction: Any, probs: Any = None) -> dict[str, Any]:
        """Return a prediction for programs, with places in the text as it was written."""

    def input_settings(self, settings: InputSettings, *, with_static: bool) -> InputSettings:
        """Complete a user's settings with those of the paper."""
        settings = settings.resolved(self.paper_inputs, with_static=with_static)
        positions = [*self.positions]
        if settings.embeddings == "static_output":
            positions.remove("input")  # where it would read the same as `static`
        if settings.positions not in positions:
            raise InputError(
                f"The task {self.name} has nothing to read with embeddings="
                f"{settings.embeddings!r} at inputs.positions={settings.positions!r}; possible "
                f"positions: {', '.join(positions) or 'none, take embeddings=static'}."
            )
        return settings


log = logging.getLogger(__name__)

TreebankUnits = Literal["words", "morphemes"]
NUM_LOOKED_AT = 1000  # words that are tried
TOO_MANY_SPLIT = 0.4
"""A larger share of split words means other units: English treebank 0.01, Korean morphemes 0.2,
eojeol 0.8."""


def warn_of_split_words(path: Path, words: Iterable[str], tokenizer: Tokenizer) -> None:
    """Warn, once, if raw text is split into smaller pieces than the data of ``path``."""
    distinct = list(islice(dict.fromkeys(words), NUM_LOOKED_AT))
    num_split = sum(len(tokenizer.tokenize(word)) > 1 for word in distinct)
    if num_split > TOO_MANY_SPLIT * len(distinct):
        warn_once(
            f"{path}: the tokenizer {tokenizer.name!r} splits {num_split} of {len(distinct)} "
            "words: raw text is read in other pieces. Use a biLM whose tokenizer leaves them "
            "whole, or data in its units (units=morphemes reads those of a Korean treebank)."
        )


@cache
def warn_once(message: str) -> None:
    """Log a warning that this process has not given yet."""
    log.warning("%s", message)


@dataclass(frozen=True)
class TaskText:
    """A `SentenceReader` (`elmokit.corpus.text_shards`) of a task's files, without their labels."""

    task: Task[Any]
    tokenizer: Tokenizer

    @classmethod
    def of_model(cls, task: str, model: str, *, units: Units = "words") -> "TaskText":
        """Return the text of a task as a biLM reads it."""
        config = read_config(find_model(model))
        form = config.bilm.char_vocab.normalization
        tokenizer = NormalizingTokenizer(build_tokenizer(config.tokenizer), form)
        return cls(find_task(task).in_units(units), tokenizer)

    @property
    def name(self) -> str:
        return f"{self.task.name}, {self.task.units}"

    def files(self, paths: Sequence[Path], split: Literal["train", "dev"]) -> list[Path]:
        """Return files as they are, and of directories the file of a split."""
        suffixes = self.task.suffixes
        return [find_split(path, split, suffixes) if path.is_dir() else path for path in paths]

    def read(self, path: Path) -> Iterator[Sentence]:
        """Yield the sentences of a file in order, those with words."""
        examples = self.task.read(path, training=False, tokenize=self.tokenizer.tokenize)
        if self.task.units == "words":
            warn_of_split_words(path, self.task.words(examples), self.tokenizer)
        for example in examples:
            yield from filter(None, self.task.sentences(example))
