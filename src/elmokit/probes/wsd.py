"""Word senses by the nearest centroid: how much meaning in context a layer captures.

A new occurrence gets the sense of its lemma and part of speech whose mean vector in an annotated
corpus is nearest by cosine; lemmas that the corpus lacks get the inventory's first sense.

Source: Peters et al. 2018, section 5.3 and table 5; candidates as in Raganato et al. 2017.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from elmokit.metrics.span_f1 import f1_of
from elmokit.probes.data import find_sense_files, read_sense_data
from elmokit.probes.occurrences import blocks, lemma_of, occurrence_vectors, unit_rows
from elmokit.probes.probe import Probe, words_of
from elmokit.probes.vector_sources import VectorSource, check_names
from elmokit.tasks.formats.senses import SenseInventory, SenseOccurrence, SenseSentence

FIRST_SENSE, MOST_FREQUENT = "first sense", "most frequent sense"
"""Baselines: the inventory's first sense, and the corpus's most frequent one."""
_SENTENCES_TOGETHER = 2048

Lemma = tuple[str, str]
"""Lemma and part of speech."""


@dataclass(frozen=True, kw_only=True)
class WsdScore:
    """Share of annotated words that get one of their gold senses, in percent."""

    name: str
    """Of the representation."""
    f1: float
    """Equals the accuracy if every word is answered."""
    num_instances: int
    num_backed_off: int
    """Answered with the inventory's first sense, because the corpus lacks the lemma."""
    num_unanswered: int
    """Neither the corpus nor the inventory has the lemma."""
    counts: NDArray[np.float64] = field(repr=False, compare=False)
    """A row per sentence: correct, answered, all; scored by `f1_of`."""


def disambiguate(
    sources: Sequence[VectorSource],
    training: Iterable[SenseSentence],
    test: Sequence[SenseSentence],
    inventory: SenseInventory,
) -> tuple[WsdScore, ...]:
    """Disambiguate the words of ``test`` by centroids from ``training``.

    An occurrence with several senses contributes to each; any gold sense is correct; ties go to the
    sense that the inventory lists first. ``training`` is read once in bounded memory, and only
    sentences with lemmas of ``test`` are embedded.

    Returns:
        `FIRST_SENSE` and `MOST_FREQUENT`, then a score per name, in the order of the sources.

    Raises:
        InputError: if two representations have the same name, or there is none.
    """
    check_names(sources)
    lemmas = {_lemma(word) for sentence in test for word in sentence.occurrences}
    frequencies: dict[Lemma, Counter[str]] = {}
    sums: list[dict[tuple[Lemma, str], np.ndarray]] = [{} for _ in sources]
    for block in blocks(training, _SENTENCES_TOGETHER):
        found = [word for one in block for word in one.occurrences if _lemma(word) in lemmas]
        for word in found:
            frequencies.setdefault(_lemma(word), Counter()).update(word.sense_keys)
        wanted = {word.name for word in found}
        for source, total in zip(sources, sums, strict=True):
            for word, vectors in occurrence_vectors(source, block, wanted):
                for sense in word.sense_keys:
                    key = (_lemma(word), sense)
                    total[key] = total.get(key, 0) + vectors.astype(np.float64)
    test_words = _Answers(test, frequencies, inventory)
    scores = [
        test_words.score(FIRST_SENSE, {}),
        test_words.score(MOST_FREQUENT, test_words.most_frequent()),
    ]
    for source, total in zip(sources, sums, strict=True):
        answers = test_words.nearest(source, total)
        scores += [
            test_words.score(name, {word: senses[way] for word, senses in answers.items()})
            for way, name in enumerate(source.names)
        ]
    return tuple(scores)


class _Answers:
    """Finds senses of the test words, and scores them."""

    def __init__(
        self,
        test: Sequence[SenseSentence],
        frequencies: dict[Lemma, Counter[str]],
        inventory: SenseInventory,
    ) -> None:
        self._test, self._frequencies = test, frequencies
        self._first: dict[str, str | None] = {}
        self._candidates: dict[str, list[str]] = {}
        for word in self._words():
            order = [sense.sense_key for sense in inventory.senses(word.lemma, word.pos)]
            ranks = {sense: rank for rank, sense in enumerate(order)}
            self._first[word.name] = inventory.first_sense(word.lemma, word.pos)
            self._candidates[word.name] = sorted(
                frequencies.get(_lemma(word), ()),
                key=lambda sense: (ranks.get(sense, len(ranks)), sense),
            )

    def most_frequent(self) -> dict[str, str]:
        """Return the most frequent sense of each word whose lemma the corpus has."""
        return {
            word.name: max(candidates, key=self._frequencies[_lemma(word)].__getitem__)
            for word in self._words()
            if (candidates := self._candidates[word.name])
        }

    def nearest(
        self, source: VectorSource, sums: dict[tuple[Lemma, str], np.ndarray]
    ) -> dict[str, list[str]]:
        """Return the nearest sense of each such word, for each name of the source."""
        wanted = {name for name, candidates in self._candidates.items() if candidates}
        answers = {}
        for word, vectors in occurrence_vectors(source, self._test, wanted):
            candidates = self._candidates[word.name]
            centroids = np.stack([sums[_lemma(word), sense] for sense in candidates])  # (K, S, X)
            cosines = (unit_rows(centroids) * unit_rows(vectors)).sum(axis=2)  # (K, S)
            answers[word.name] = [candidates[k] for k in cosines.argmax(axis=0)]
        return answers

    def score(self, name: str, answers: dict[str, str]) -> WsdScore:
        """Score answers; words without one get the first sense of the inventory."""
        counts = np.zeros((len(self._test), 3))
        num_backed_off = 0
        for row, sentence in enumerate(self._test):
            for word in sentence.occurrences:
                answer = answers.get(word.name)
                if answer is None:
                    answer = self._first[word.name]
                    num_backed_off += answer is not None
                counts[row] += answer in word.sense_keys, answer is not None, 1
        totals = counts.sum(axis=0)
        return WsdScore(
            name=name,
            f1=float(f1_of(totals)), counts=counts,
            num_instances=int(totals[2]), num_backed_off=num_backed_off,
            num_unanswered=int(totals[2] - totals[1]),
        )  # fmt: skip

    def _words(self) -> list[SenseOccurrence]:
        return [word for sentence in self._test for word in sentence.occurrences]


def _lemma(word: SenseOccurrence) -> Lemma:
    return lemma_of(word), word.pos


PROBE = Probe(
    find=find_sense_files,
    read=lambda files, tokenize, units: read_sense_data(files),
    words=lambda data: words_of(data.train, data.test),
    measure=lambda sources, data, seed, device: disambiguate(
        sources, data.train, data.test, data.inventory
    ),
    columns={"f1": "F1", "num_instances": "words", "num_backed_off": "by the first sense"},
    note="percent of {num_instances:,} words; {num_backed_off:,} got the first sense because the "
    "corpus lacks their lemma, {num_unanswered:,} none",
    counts="counts",
    score=f1_of,
    has_test_sets=True,
    is_tokenized=True,
)
