"""Parts of speech by a linear classifier on a frozen layer: how much syntax a layer captures.

Features are standardized and have the same Gaussian prior, so every representation is treated
alike. The loss is convex: the result depends on no seed, order or stopping time. Source: Peters et
al. 2018, section 5.3 and table 6.
"""

import math
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import compress, islice

import numpy as np
from numpy.typing import NDArray

from elmokit.errors import needs_extra
from elmokit.metrics.task_scores import accuracy_of, count_labels
from elmokit.probes.inputs import VectorSource, read_pos_data
from elmokit.probes.probe import Figure, Probe, words_of
from elmokit.shapes import Num
from elmokit.tasks.formats.conll import TaggedSentence

MAJORITY = "majority tag"
"""Baseline: a word's most frequent tag; for unseen words, the most frequent tag of all."""
MAX_ITERATIONS = 500


@dataclass(frozen=True, kw_only=True)
class PosScore:
    """Accuracy on the words of the dev set, in percent."""

    name: str
    accuracy: float
    seen: float
    """On words that occur in the training set, with the same spelling; NaN: there are none."""
    unseen: float
    """On the others; NaN: there are none."""
    num_words: int
    num_unseen: int
    seconds: float
    """Of training and scoring, without computing layers."""
    counts: NDArray[np.float64] = field(repr=False, compare=False)
    """A row per sentence: correct, all; for `elmokit.metrics.bootstrap` with `accuracy_of`."""


def probe_pos(
    sources: Sequence[VectorSource],
    train: Sequence[TaggedSentence],
    dev: Sequence[TaggedSentence],
) -> tuple[PosScore, ...]:
    """Score a linear classifier on each representation, after the baseline `MAJORITY`.

    Tags that are not in training count as wrong.
    """
    tags = [tag for sentence in train for tag in sentence.tags]
    known, started = words_of(train), time.perf_counter()
    scores = [_score(MAJORITY, _majority_tags(train, dev), known, dev, started)]
    for source in sources:
        # all layers of all words are in memory, those of a biLM in half precision
        train_vectors, dev_vectors = (
            [vectors.astype(source.kept_as) for vectors in source.stream(words)]
            for words in ([sentence.tokens for sentence in part] for part in (train, dev))
        )
        for way, name in enumerate(source.names):
            started = time.perf_counter()
            rows, dev_rows = (
                np.concatenate([vectors[way] for vectors in part], dtype=np.float32)
                for part in (train_vectors, dev_vectors)
            )
            predicted = _classify(rows, tags, dev_rows)
            scores.append(_score(name, predicted, known, dev, started))
    return tuple(scores)


def _classify(
    rows: Num[np.ndarray, "N X"],
    tags: Sequence[str],
    dev_rows: Num[np.ndarray, "M X"],
) -> list[str]:
    with needs_extra("sklearn", module="scikit-learn"):
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
    classifier = make_pipeline(StandardScaler(), LogisticRegression(max_iter=MAX_ITERATIONS))
    classifier.fit(rows, tags)  # warns if it does not converge
    return classifier.predict(dev_rows).tolist()


def _score(
    name: str,
    predicted: Sequence[str],
    known: set[str],
    dev: Sequence[TaggedSentence],
    started: float,
) -> PosScore:
    remaining = iter(predicted)
    guesses = [list(islice(remaining, len(sentence.tokens))) for sentence in dev]
    truths = [sentence.tags for sentence in dev]
    is_unseen = [[word not in known for word in sentence.tokens] for sentence in dev]
    counts = count_labels(guesses, truths).rows
    unseen_pairs = (
        [list(compress(*pair)) for pair in zip(tags, is_unseen, strict=True)]
        for tags in (guesses, truths)
    )
    totals = counts.sum(axis=0)
    unseen_totals = count_labels(*unseen_pairs).rows.sum(axis=0)
    return PosScore(
        name=name,
        accuracy=float(accuracy_of(totals)),
        seen=_accuracy_or_nan(totals - unseen_totals),
        unseen=_accuracy_or_nan(unseen_totals),
        num_words=int(totals[1]), num_unseen=int(unseen_totals[1]),
        seconds=time.perf_counter() - started, counts=counts,
    )  # fmt: skip


def _accuracy_or_nan(totals: Num[np.ndarray, "2"]) -> float:
    return float(accuracy_of(totals)) if totals[1] else math.nan


def _majority_tags(train: Sequence[TaggedSentence], dev: Sequence[TaggedSentence]) -> list[str]:
    by_word: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for sentence in train:
        for word, tag in zip(sentence.tokens, sentence.tags, strict=True):
            by_word[word][tag] += 1
    overall = sum(by_word.values(), Counter()).most_common(1)[0][0]
    best = {word: tags.most_common(1)[0][0] for word, tags in by_word.items()}
    return [best.get(word, overall) for sentence in dev for word in sentence.tokens]


PROBE = Probe(
    read=lambda data, test, units: read_pos_data(data, units=units),
    words=lambda data: words_of(data.train, data.dev),
    measure=lambda sources, data, seed: probe_pos(sources, data.train, data.dev),
    columns={"accuracy": "accuracy", "seen": "seen words", "unseen": "unseen words"},
    note="percent of {num_words:,} words, {num_unseen:,} of them not in the training set",
    counts="counts",
    figures=(Figure("accuracy", accuracy_of),),
    has_units=True,
)
