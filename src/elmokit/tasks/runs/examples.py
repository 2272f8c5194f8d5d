"""The examples of a data set with the layers of their sentences, and their batches."""

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from elmokit.tasks.inputs.layer_cache import Sentence, SentenceLayers
from elmokit.tasks.inputs.token_inputs import BatchMaker, TokenBatch
from elmokit.tasks.task import Task

BATCHES_SORTED_TOGETHER = 20
"""Batches whose examples are put in order of length, so that little is padded."""
PREDICTION_WORDS = 4000
"""Padded words of a batch in prediction, and of any batch of a document's sentences."""


class Examples:
    """Examples of a task with the layers of their sentences.

    Args:
        task: What they are.
        examples: In their order.
        keep: Returns the layers of distinct sentences; none: no biLM is read.
    """

    def __init__(
        self,
        task: Task[Any],
        examples: Sequence[Any],
        keep: Callable[[list[Sentence]], SentenceLayers | Sequence[np.ndarray]] | None,
    ) -> None:
        self.task, self.examples = task, list(examples)
        sentences = [task.sentences(example) for example in self.examples]
        self._lengths = [[len(words) for words in group] for group in sentences]
        distinct = dict.fromkeys(words for group in sentences for words in group)
        self._numbers = {words: number for number, words in enumerate(distinct)}
        self._layers = None if keep is None else keep(list(distinct))

    def __len__(self) -> int:
        return len(self.examples)

    def length(self, index: int) -> int:
        """Return the words of an example's longest sentence; all words of a document."""
        lengths = self._lengths[index]
        return sum(lengths) if self.task.batched_by == "document" else max(lengths)

    def batch(self, maker: BatchMaker, indices: Sequence[int]) -> list[TokenBatch]:
        """Return the padded sentences of some examples, as a `TaskModel` reads them."""
        return self.batch_of(maker, [self.examples[index] for index in indices])

    def batch_of(self, maker: BatchMaker, examples: Sequence[Any]) -> list[TokenBatch]:
        """The same for any examples whose sentences are among these, such as their parts."""
        sentences = [self.task.sentences(example) for example in examples]
        if self.task.batched_by == "document":
            groups = _by_padded_words([words for group in sentences for words in group])
        else:
            groups = zip(*sentences, strict=True)
        return [maker.make(group, self._layers_of(group)) for group in groups]

    def _layers_of(self, group: Sequence[Sentence]) -> list[np.ndarray] | None:
        if self._layers is None:
            return None
        return [self._layers[self._numbers[words]] for words in group]


def training_batches(
    training: Examples, indices: Sequence[int], size: int, *, seed: str
) -> list[list[int]]:
    """Return the batches of an epoch: in random order, of sentences of like length."""
    draw = random.Random(seed)
    order = list(indices)
    draw.shuffle(order)
    together = size * BATCHES_SORTED_TOGETHER
    batches = []
    for start in range(0, len(order), together):
        part = sorted(order[start : start + together], key=training.length)
        batches += [part[at : at + size] for at in range(0, len(part), size)]
    draw.shuffle(batches)
    return batches


def prediction_batches(examples: Examples) -> Iterator[list[int]]:
    """Yield all examples by length, in batches of at most `PREDICTION_WORDS` padded words."""
    batch: list[int] = []
    for index in sorted(range(len(examples)), key=examples.length):
        if batch and (len(batch) + 1) * max(1, examples.length(index)) > PREDICTION_WORDS:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def _by_padded_words(sentences: Sequence[Sentence]) -> Iterator[Sequence[Sentence]]:
    """Yield all sentences, one after another, in groups of at most `PREDICTION_WORDS` when padded.

    A longer sentence is a group by itself.
    """
    start = longest = 0
    for end, words in enumerate(sentences):
        longest = max(longest, len(words))
        if end > start and (end + 1 - start) * longest > PREDICTION_WORDS:
            yield sentences[start:end]
            start, longest = end, len(words)
    if start < len(sentences):
        yield sentences[start:]
