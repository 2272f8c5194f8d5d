"""The annotated words of a corpus and of a test set, by lemma, with the senses they may have.

The corpus is also a test set, one document left out at a time: a word never sees its own document.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elmokit.probes.data import lemma_of
from elmokit.tasks.formats.senses import SenseInventory, SenseOccurrence, SenseSentence


@dataclass(frozen=True, kw_only=True)
class LemmaGroup:
    """The R words of a lemma and part of speech: the corpus, document by document, then the test.

    Their K candidates are the senses that the corpus has, in the order of the inventory.
    """

    rows: slice
    num_corpus: int
    documents: NDArray[np.int64]
    """(R,) a number for each document; those of the test set are sentences."""
    is_gold: NDArray[np.bool_]
    """(R, K) whether a word has a sense."""
    frequencies: NDArray[np.int64]
    """(R, K) how often the documents other than the word's have a sense."""

    def document_runs(self) -> Iterable[slice]:
        edges = np.flatnonzero(np.diff(self.documents[: self.num_corpus])) + 1
        limits = [0, *edges.tolist(), self.num_corpus]
        return map(slice, limits[:-1], limits[1:])

    @property
    def is_ambiguous(self) -> bool:
        return self.is_gold.shape[1] > 1


class SenseWords:
    """All W words of a corpus and a test set, lemma by lemma."""

    def __init__(
        self,
        corpus: Sequence[SenseSentence],
        test: Sequence[SenseSentence],
        inventory: SenseInventory,
    ) -> None:
        self.num_test = len(test)
        numbers: dict[str, int] = {}
        by_lemma: defaultdict[tuple[str, str], list[tuple[int, SenseOccurrence]]] = defaultdict(
            list
        )
        for sentence in corpus:
            place = self.num_test + numbers.setdefault(sentence.document, len(numbers))
            for word in sentence.occurrences:
                by_lemma[lemma_of(word), word.pos].append((place, word))
        # document by document, so that each is one run of rows; the sort keeps the order inside
        for members in by_lemma.values():
            members.sort(key=lambda member: member[0])
        for place, sentence in enumerate(test):
            for word in sentence.occurrences:
                by_lemma[lemma_of(word), word.pos].append((place, word))
        self.num_documents = len(numbers)
        self.groups: list[LemmaGroup] = []
        corpus_rows: dict[str, int] = {}
        test_rows: dict[str, int] = {}
        self.parts = (corpus, corpus_rows), (test, test_rows)
        every: list[tuple[int, SenseOccurrence]] = []
        for (lemma, pos), members in by_lemma.items():
            order = [sense.sense_key for sense in inventory.senses(lemma, pos)]
            group = self._group(members, order, start=len(every))
            if group.is_ambiguous:
                for row, (place, word) in enumerate(members, len(every)):
                    (test_rows if place < self.num_test else corpus_rows)[word.name] = row
            self.groups.append(group)
            every += members
        self.places = np.array([place for place, _ in every], dtype=np.int64)
        self.is_test = self.places < self.num_test
        firsts = [inventory.first_sense(word.lemma, word.pos) for _, word in every]
        pairs = zip(firsts, every, strict=True)
        self.first_is_gold = np.array([key in word.sense_keys for key, (_, word) in pairs], bool)
        self.has_first = np.array([key is not None for key in firsts], dtype=bool)
        known = [group.frequencies.any(axis=1) for group in self.groups]
        self.has_candidates = np.concatenate([*known, np.zeros(0, dtype=bool)])

    def __len__(self) -> int:
        return len(self.places)

    def _group(
        self, members: Sequence[tuple[int, SenseOccurrence]], order: Sequence[str], *, start: int
    ) -> LemmaGroup:
        documents = np.array([place for place, _ in members], dtype=np.int64)
        num_corpus = int((documents >= self.num_test).sum())
        ranks = {sense: rank for rank, sense in enumerate(order)}
        senses = {sense for _, word in members[:num_corpus] for sense in word.sense_keys}
        candidates = sorted(senses, key=lambda sense: (ranks.get(sense, len(ranks)), sense))
        is_gold = np.array(
            [[sense in word.sense_keys for sense in candidates] for _, word in members], dtype=bool
        ).reshape(len(members), len(candidates))
        # what a word may know of its lemma: all annotations but those of its own document
        frequencies = np.tile(is_gold[:num_corpus].sum(axis=0), (len(members), 1))
        for document in np.unique(documents[:num_corpus]):
            own = documents == document
            frequencies[own] -= is_gold[own].sum(axis=0)
        return LemmaGroup(
            rows=slice(start, start + len(members)), num_corpus=num_corpus,
            documents=documents, is_gold=is_gold, frequencies=frequencies,
        )  # fmt: skip
