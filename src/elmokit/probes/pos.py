"""Parts of speech by a linear classifier on a frozen layer: how much syntax a layer captures.

Source: Peters et al. 2018, section 5.3 and table 6.
"""

import logging
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from elmokit.inference.precision import pick_device
from elmokit.metrics.accuracy import accuracy_of
from elmokit.probes.data import find_splits, read_pos_data
from elmokit.probes.linear import fit_linear
from elmokit.probes.probe import Figure, Probe, words_of
from elmokit.probes.vector_sources import VectorSource, check_names
from elmokit.tasks.formats.conll import TaggedSentence

log = logging.getLogger(__name__)

MAJORITY = "majority tag"
"""Baseline: a word's most frequent tag; for unseen words, the most frequent tag of all."""


@dataclass(frozen=True, kw_only=True)
class PosScore:
    """Accuracy on the words of the dev set, in percent."""

    name: str
    """Of the representation."""
    accuracy: float
    seen: float
    """Of words that occur in the training set, with the same spelling."""
    unseen: float
    """Of the other words."""
    num_words: int
    num_unseen: int
    seconds: float
    """Of training and scoring, without computing layers."""
    num_iterations: int = 0
    """Of the classifier's training."""
    counts: NDArray[np.float64] = field(repr=False, compare=False)
    """A row per sentence: correct, all; for `elmokit.metrics.significance` with `accuracy_of`."""
    unseen_counts: NDArray[np.float64] = field(repr=False, compare=False)
    """The same for unseen words."""


def probe_pos(
    sources: Sequence[VectorSource],
    train: Sequence[TaggedSentence],
    dev: Sequence[TaggedSentence],
    *,
    device: str = "auto",
) -> tuple[PosScore, ...]:
    """Train `elmokit.probes.linear` on each representation; score it on ``dev``.

    Tags that are not in training count as wrong. ``device`` is that of the classifiers, see
    `pick_device`.

    Returns:
        The baseline `MAJORITY`, then a score per name, in the order of the sources.

    Raises:
        InputError: if two representations have the same name, or there is none.
        ValueError: if ``train`` or ``dev`` has no words, or there is no such device.
    """
    check_names(sources)
    chosen = pick_device(device)
    data = _Data(train, dev)
    scores = [data.score(MAJORITY, _majority_tags(train, dev), started=time.perf_counter())]
    for source in sources:
        train_vectors = source.keep([sentence.tokens for sentence in train])
        dev_vectors = source.keep([sentence.tokens for sentence in dev])
        for way, name in enumerate(source.names):
            started = time.perf_counter()
            rows = _rows(train_vectors, way)
            probe = fit_linear(rows, data.train_ids, len(data.tags), device=chosen)
            if not probe.converged:
                log.warning(
                    "%s: the classifier did not converge in %d iterations",
                    name, probe.num_iterations,
                )  # fmt: skip
            found = probe.predict(_rows(dev_vectors, way)).tolist()
            predicted = [data.tags[number] for number in found]
            scores.append(data.score(name, predicted, started, probe.num_iterations))
    return tuple(scores)


class _Data:
    """Tags as numbers, and which words are unseen."""

    def __init__(self, train: Sequence[TaggedSentence], dev: Sequence[TaggedSentence]) -> None:
        tags = _flat(sentence.tags for sentence in train)
        words = set(_flat(sentence.tokens for sentence in train))
        if not tags or not any(sentence.tokens for sentence in dev):
            raise ValueError(
                "`train` and `dev` must have at least one word each, got "
                f"{len(tags)} and {sum(len(sentence.tokens) for sentence in dev)}."
            )
        self.tags = sorted(set(tags))
        ids = {tag: number for number, tag in enumerate(self.tags)}
        self.train_ids = np.array([ids[tag] for tag in tags], dtype=np.int64)
        self._gold = np.array(_flat(sentence.tags for sentence in dev))
        self._sentences = np.repeat(np.arange(len(dev)), [len(one.tokens) for one in dev])
        self._num_sentences = len(dev)
        dev_words = _flat(sentence.tokens for sentence in dev)
        self._unseen = np.array([word not in words for word in dev_words])

    def score(
        self, name: str, predicted: Sequence[str], started: float, num_iterations: int = 0
    ) -> PosScore:
        right = np.array(predicted) == self._gold
        counts = self._counts(right, np.ones_like(self._unseen))
        unseen_counts = self._counts(right, self._unseen)
        totals, unseen_totals = counts.sum(axis=0), unseen_counts.sum(axis=0)
        return PosScore(
            name=name,
            accuracy=float(accuracy_of(totals)),
            seen=float(accuracy_of(totals - unseen_totals)),
            unseen=float(accuracy_of(unseen_totals)),
            num_words=int(totals[1]), num_unseen=int(unseen_totals[1]),
            seconds=time.perf_counter() - started, num_iterations=num_iterations,
            counts=counts, unseen_counts=unseen_counts,
        )  # fmt: skip

    def _counts(self, right: NDArray[np.bool_], among: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return correct and all words per sentence, among some of the words: (sentences, 2)."""
        columns = [
            np.bincount(self._sentences, weights=values, minlength=self._num_sentences)
            for values in (right & among, among)
        ]
        return np.stack(columns, axis=1).astype(np.float64)


def _majority_tags(train: Sequence[TaggedSentence], dev: Sequence[TaggedSentence]) -> list[str]:
    by_word: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for sentence in train:
        for word, tag in zip(sentence.tokens, sentence.tags, strict=True):
            by_word[word][tag] += 1
    overall = sum(by_word.values(), Counter()).most_common(1)[0][0]
    best = {word: tags.most_common(1)[0][0] for word, tags in by_word.items()}
    return [best.get(word, overall) for word in _flat(sentence.tokens for sentence in dev)]


def _rows(vectors: Sequence[np.ndarray], way: int) -> np.ndarray:
    """Return the vectors of all words for one name of the source: (N, X)."""
    return np.concatenate([one[way] for one in vectors])


def _flat(lists: Iterable[Sequence[str]]) -> list[str]:
    return [item for one in lists for item in one]


PROBE = Probe(
    find=lambda data, test: find_splits(data, (".conllu",)),
    read=lambda files, tokenize, units: read_pos_data(files, units=units),
    words=lambda data: words_of(data.train, data.dev),
    measure=lambda sources, data, seed, device: probe_pos(
        sources, data.train, data.dev, device=device
    ),
    columns={"accuracy": "accuracy", "seen": "seen words", "unseen": "unseen words"},
    note="percent of {num_words:,} words, {num_unseen:,} of them not in the training set",
    counts="counts",
    figures=(Figure("accuracy", accuracy_of),),
    has_units=True,
    is_tokenized=True,
    keeps_layers=True,
)
