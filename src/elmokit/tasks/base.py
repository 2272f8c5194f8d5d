"""What a task must offer: read, build, loss, predict, score, show."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from elmokit.errors import InputError
from elmokit.tasks.inputs import TokenBatch, TokenInputs
from elmokit.tasks.layer_cache import Sentence

Example = TypeVar("Example")
Labels = list[str]
Tokenize = Callable[[str], list[str]]


@dataclass(frozen=True)
class TaskScore:
    """How well predictions agree with gold."""

    metric: str
    """Name of the main number."""
    value: float
    """The main number, in percent."""
    details: dict[str, float] = field(default_factory=dict)
    """Further numbers, by name."""
    counts: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    """Per example (num_examples, k), from which the main number follows; for significance tests."""


class TaskModel(nn.Module):
    """A task's network on top of `TokenInputs`.

    It gets one batch of sentences for each place in an example: a pair of texts has two.
    """

    def loss(self, batches: Sequence[TokenBatch], examples: Sequence[Any]) -> Tensor:
        """Return the mean loss of a batch, in nats."""
        raise NotImplementedError

    def predict(self, batches: Sequence[TokenBatch], examples: Sequence[Any]) -> list[Any]:
        """Return the answer for each example; their gold is not looked at."""
        raise NotImplementedError

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw fresh weights."""
        raise NotImplementedError


class Task(Generic[Example]):
    """A task: everything about it but the training loop, the biLM and the disk."""

    name: ClassVar[str]
    metric: ClassVar[str]
    """Of `score`."""
    num_places: ClassVar[int] = 1
    """Places where the biLM is used: 1 input, 2 input and output."""
    num_texts: ClassVar[int] = 1
    """Texts of one example; in raw text they are separated by tabs."""
    suffixes: ClassVar[tuple[str, ...]] = ()
    """Endings of the task's files, where a data set has others of the same name."""

    def read(self, path: Path, *, training: bool, tokenize: Tokenize) -> list[Example]:
        """Read examples.

        Args:
            path: A file of the task's format.
            training: A task may then take more of a file (the phrases of a tree).
            tokenize: Makes words of a text that comes without.

        Raises:
            FileNotFoundError: if there is no such file.
            FormatError: if it is damaged, with the place.
        """
        raise NotImplementedError

    def sentences(self, example: Example) -> tuple[Sentence, ...]:
        """Return the sentences that the biLM reads."""
        raise NotImplementedError

    def gold(self, example: Example) -> Any:
        """Return what `TaskModel.predict` should return."""
        raise NotImplementedError

    def labels(self, examples: Sequence[Example]) -> Labels:
        """Return all labels, in the order of their ids."""
        raise NotImplementedError

    def build(self, inputs: TokenInputs, labels: Labels, hidden_dims: tuple[int, ...]) -> TaskModel:
        """Build the network."""
        raise NotImplementedError

    def score(self, gold: Sequence[Any], predicted: Sequence[Any]) -> TaskScore:
        """Compare predictions with gold."""
        raise NotImplementedError

    def example_of(self, *sentences: Sentence) -> Example:
        """Make an example without gold of new sentences, for `TaskModel.predict`."""
        raise NotImplementedError

    def from_text(self, text: str, tokenize: Tokenize) -> Example:
        """Make an example of a line of raw text.

        Raises:
            ValueError: if it does not hold as many texts as an example needs.
        """
        parts = text.split("\t") if self.num_texts > 1 else [text]
        if len(parts) != self.num_texts:
            raise InputError(
                f"The task {self.name} needs {self.num_texts} texts a line, separated by tabs, got "
                f"{len(parts)}: {text!r:.80}."
            )
        return self.example_of(*(tuple(tokenize(part)) for part in parts))

    def show(self, example: Example, prediction: Any) -> str:
        """Return a prediction as a person wants to read it."""
        raise NotImplementedError

    def as_json(self, example: Example, prediction: Any) -> dict[str, Any]:
        """Return a prediction for machines."""
        raise NotImplementedError

    @property
    def default_hidden_dims(self) -> tuple[int, ...]:
        """Widths of the recurrent layers, one direction."""
        return (200,)
