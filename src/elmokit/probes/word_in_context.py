"""Does a word mean the same in two texts? Decided by a threshold on the cosine of its vectors.

Source: Pilehvar & Camacho-Collados 2019 (WiC), the threshold model; MCL-WiC and KoBEST.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from elmokit.errors import InputError
from elmokit.metrics.task_scores import accuracy_of
from elmokit.probes.inputs import (
    SplitFiles,
    Splits,
    VectorSource,
    check_names,
    find_splits,
    read_wic_data,
)
from elmokit.probes.neighbors import unit_rows
from elmokit.probes.probe import Figure, Probe
from elmokit.shapes import Bool, Float
from elmokit.tasks.formats.senses import LABELS_APART, ContextPair, WordInContext
from elmokit.tasks.inputs.layer_cache import Sentence
from elmokit.tasks.task import Units
from elmokit.text.alignment import align, covering_words
from elmokit.text.given_sentences import Tokenize

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class WicScore:
    """Accuracy in percent."""

    name: str
    accuracy: float
    train_accuracy: float
    threshold: float
    """Cosine from which pairs mean the same; the best on the training set."""
    num_pairs: int
    num_not_found: int
    """Pairs whose word does not match the tokenizer's words; they count as wrong."""
    counts: NDArray[np.float64] = field(repr=False, compare=False)


@dataclass(frozen=True)
class LocatedPairs:
    """Pairs of texts as words, with the places of the target words; see `find_words`."""

    same_sense: NDArray[np.bool_]
    is_located: NDArray[np.bool_]
    sentences: list[Sentence]
    """The texts of the located pairs, two by two."""
    spans: list[tuple[int, int]]
    """``[first, last)`` of the target word in each of them."""

    def cosines(self, source: VectorSource) -> Float[np.ndarray, "S N"]:
        """Return the cosine of each located pair, for each name of the source."""
        stream = source.stream(self.sentences)
        words = [
            vectors[:, first:last].mean(axis=1)
            for (first, last), vectors in zip(self.spans, stream, strict=True)
        ]
        x = unit_rows(np.stack(words, axis=1))  # (S, 2N, X)
        return (x[:, ::2] * x[:, 1::2]).sum(axis=2)


def find_words(pairs: Sequence[ContextPair], tokenize: Tokenize) -> LocatedPairs:
    """Split the texts with the model's tokenizer and find the target words."""
    places = [(_locate(pair.first, tokenize), _locate(pair.second, tokenize)) for pair in pairs]
    located = [place for pair in places if None not in pair for place in pair if place is not None]
    num_lost = len(pairs) - len(located) // 2
    message = (
        f"{num_lost} of {len(pairs)} pairs: the target word does not match the tokenizer's words"
    )
    if num_lost == len(pairs):
        raise InputError(f"{message}. Is the tokenizer right for this language?")
    if num_lost:
        log.warning("%s", message)
    return LocatedPairs(
        np.array([pair.same_sense for pair in pairs]), np.array([None not in p for p in places]),
        [words for words, _ in located], [span for _, span in located],
    )  # fmt: skip


def _locate(word: WordInContext, tokenize: Tokenize) -> tuple[Sentence, tuple[int, int]] | None:
    words = tuple(tokenize(word.text))
    offsets = align(words, word.text)
    span = None if offsets is None else covering_words(offsets, word.start, word.end)
    return None if span is None else (words, span)


def word_in_context(
    sources: Sequence[VectorSource], train: LocatedPairs, dev: LocatedPairs
) -> tuple[WicScore, ...]:
    """Classify the pairs of ``dev`` by the cosine of the word's two vectors.

    The threshold is the best on ``train``; a word that the tokenizer splits has the mean of its
    parts.
    """
    check_names(sources)
    scores: list[WicScore] = []
    for source in sources:
        train_cosines, dev_cosines = train.cosines(source), dev.cosines(source)
        for way, name in enumerate(source.names):
            threshold, accuracy = best_threshold(
                train_cosines[way], train.same_sense[train.is_located]
            )
            counts = np.repeat([[0.0, 1.0]], len(dev.is_located), axis=0)
            answers = dev_cosines[way] >= threshold
            counts[dev.is_located, 0] = answers == dev.same_sense[dev.is_located]
            scores.append(WicScore(
                name=name, accuracy=float(accuracy_of(counts.sum(axis=0))),
                train_accuracy=accuracy, threshold=threshold, num_pairs=len(counts),
                num_not_found=int((~dev.is_located).sum()), counts=counts,
            ))  # fmt: skip
    return tuple(scores)


def best_threshold(
    cosines: Float[np.ndarray, " N"], same_sense: Bool[np.ndarray, " N"]
) -> tuple[float, float]:
    """Return the most accurate threshold, and its accuracy in percent.

    It is halfway between two cosines, or beyond all of them; ties go to the lowest.
    """
    order = np.argsort(cosines, kind="stable")
    values, truth = cosines[order].astype(np.float64), same_sense[order]
    # right[i]: the i lowest are classified as different, the others as the same
    right = np.concatenate([[0], np.cumsum(~truth)]) + truth.sum()
    right[1:] -= np.cumsum(truth)
    # halfway between cosines: rounding moves no pair to the other side
    edges = np.concatenate([[values[0] - 1], (values[1:] + values[:-1]) / 2, [values[-1] + 1]])
    possible = np.concatenate([[True], values[1:] > values[:-1], [True]])
    best = int(np.where(possible, right, -1).argmax())
    return float(edges[best]), float(100 * right[best] / len(values))


def _read(files: SplitFiles, tokenize: Tokenize, units: Units) -> Splits[LocatedPairs]:
    pairs = read_wic_data(files)
    return Splits(train=find_words(pairs.train, tokenize), dev=find_words(pairs.dev, tokenize))


PROBE = Probe(
    find=lambda data, test: find_splits(data, (LABELS_APART,)),
    read=_read,
    words=lambda data: set().union(*data.train.sentences, *data.dev.sentences),
    measure=lambda sources, data, seed: word_in_context(sources, data.train, data.dev),
    columns={"accuracy": "accuracy", "train_accuracy": "train accuracy"},
    note="percent of {num_pairs:,} pairs, {num_not_found:,} of them not found by the tokenizer",
    counts="counts",
    figures=(Figure("accuracy", accuracy_of),),
)
