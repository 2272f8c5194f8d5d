"""The examples of a data set with the layers of their sentences, and their batches."""

import logging
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from elmokit.tasks.inputs.layer_cache import Sentence, SentenceLayers
from elmokit.tasks.inputs.token_inputs import BatchMaker, TokenBatch
from elmokit.tasks.tagging import check_tags_words
from elmokit.tasks.task import Task

log = logging.getLogger(__name__)

LOWERCASE_SHARE = "train.lowercase_share"
"""The setting, for messages."""
BATCHES_SORTED_TOGETHER = 20
"""Training batches whose examples are sorted by length together, to reduce padding."""
PREDICTION_WORDS = 4000
"""Most padded words in a batch in prediction, and in any batch of a document's sentences."""


class Examples:
    """Examples of a task with the layers of their sentences.

    ``keep`` returns the layers of distinct sentences; none if no biLM is read. If ``read`` is
    given, only these examples have layers, and the sentences of all are its second argument.
    """

    def __init__(
        self,
        task: Task[Any],
        examples: Sequence[Any],
        keep: Callable[..., SentenceLayers | Sequence[np.ndarray]] | None,
        *,
        read: Iterable[int] | None = None,
    ) -> None:
        self.task, self.examples = task, list(examples)
        sentences = [task.sentences(example) for example in self.examples]
        self._lengths = [[len(words) for words in group] for group in sentences]
        every = dict.fromkeys(words for group in sentences for words in group)
        groups = sentences if read is None else [sentences[index] for index in sorted(read)]
        distinct = dict.fromkeys(words for group in groups for words in group)
        self._numbers = {words: number for number, words in enumerate(distinct)}
        others = [list(every)] if len(distinct) < len(every) else []
        self._layers = None if keep is None else keep(list(distinct), *others)

    def __len__(self) -> int:
        return len(self.examples)

    def length(self, index: int) -> int:
        """Return the number of words in an example's longest sentence, or in a document."""
        lengths = self._lengths[index]
        return sum(lengths) if self.task.batched_by == "document" else max(lengths)

    def batch(self, maker: BatchMaker, indices: Sequence[int]) -> list[TokenBatch]:
        """Return the batches of some examples, as a `TaskModel` reads them."""
        return self.batch_of(maker, [self.examples[index] for index in indices])

    def batch_of(self, maker: BatchMaker, examples: Sequence[Any]) -> list[TokenBatch]:
        """Return the batches of any examples made of the same sentences, such as parts."""
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


def choose_examples(training: Examples, *, share: float, seed: int) -> list[int]:
    """Return the examples to train on; a smaller share is a subset of a larger one."""
    indices = [index for index in range(len(training)) if training.length(index)]
    random.Random(seed).shuffle(indices)
    return indices[: max(1, round(share * len(indices)))]


def lowercase_copies(
    task: Task[Any], training: Sequence[Any], *, share: float, seed: int
) -> list[Any]:
    """Return copies of a share of the training examples in lower case, if that changes them.

    Raises:
        InputError: if copies are wanted, and the task does not tag words.
    """
    if not share:
        return []
    task = check_tags_words(task, wanted=LOWERCASE_SHARE)
    count = min(len(training), max(1, round(share * len(training))))
    chosen = random.Random(seed).sample(range(len(training)), count)
    copies = ((training[index], task.lowercased(training[index])) for index in sorted(chosen))
    changed = [lower for given, lower in copies if task.sentences(lower) != task.sentences(given)]
    if not changed:
        log.warning("%s has no effect: the sentences are in lower case already", LOWERCASE_SHARE)
    return changed


def training_batches(
    training: Examples, indices: Sequence[int], size: int, *, seed: str
) -> list[list[int]]:
    """Return an epoch's batches, in random order, each of examples of similar length."""
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
    """Yield all examples, sorted by length, in batches of at most `PREDICTION_WORDS`."""
    batch: list[int] = []
    for index in sorted(range(len(examples)), key=examples.length):
        if batch and (len(batch) + 1) * max(1, examples.length(index)) > PREDICTION_WORDS:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def _by_padded_words(sentences: Sequence[Sentence]) -> Iterator[Sequence[Sentence]]:
    """Yield all sentences in order, in groups of at most `PREDICTION_WORDS`, or a single one."""
    start = longest = 0
    for end, words in enumerate(sentences):
        longest = max(longest, len(words))
        if end > start and (end + 1 - start) * longest > PREDICTION_WORDS:
            yield sentences[start:end]
            start, longest = end, len(words)
    if start < len(sentences):
        yield sentences[start:]
