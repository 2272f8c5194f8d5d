"""The text of a task's data files, for fine-tuning a biLM on what the task reads."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from elmokit.tasks.formats.reading import Columns, find_split
from elmokit.tasks.inputs.layer_cache import Sentence
from elmokit.tasks.inputs.word_units import warn_of_units
from elmokit.tasks.registry import find_task
from elmokit.tasks.task import Task, Units
from elmokit.text.tokenizers.protocol import NormalizingTokenizer, Tokenizer
from elmokit.text.tokenizers.registry import build_tokenizer
from elmokit.weights.locate import find_model
from elmokit.weights.model_files import read_config


@dataclass(frozen=True)
class TaskText:
    """A `SentenceReader` (`elmokit.corpus.text_shards`) of a task's files, without their labels."""

    task: Task[Any]
    tokenizer: Tokenizer

    @classmethod
    def of_model(
        cls, task: str, model: str, *, units: Units = "words", columns: Columns | None = None
    ) -> "TaskText":
        """Return the text of a task as a biLM reads it."""
        config = read_config(find_model(model))
        form = config.bilm.char_vocab.normalization
        tokenizer = NormalizingTokenizer(build_tokenizer(config.tokenizer), form)
        return cls(find_task(task).in_units(units, columns), tokenizer)

    @property
    def name(self) -> str:
        columns = "" if self.task.columns is None else f", {self.task.columns}"
        return f"{self.task.name}, {self.task.units}{columns}"

    def files(self, paths: Sequence[Path], split: Literal["train", "dev"]) -> list[Path]:
        """Return files as they are, and of directories the file of a split."""
        suffixes = self.task.suffixes
        return [find_split(path, split, suffixes) if path.is_dir() else path for path in paths]

    def read(self, path: Path) -> Iterator[Sentence]:
        """Yield the sentences of a file in order, those with words."""
        examples = self.task.read(path, training=False, tokenize=self.tokenizer.tokenize)
        warn_of_units(
            path, self.task.words(examples), self.task.units, self.tokenizer, has_bilm=True,
            option="--units morphemes" if "morphemes" in self.task.all_units else "",
        )  # fmt: skip
        for example in examples:
            yield from filter(None, self.task.sentences(example))
