"""The annotated words of a corpus and of a test set, by lemma, with the senses they may have.

The corpus is also a test set, one document left out at a time: a word never sees its own document.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from elmokit.probes.vector_sources import VectorSource
from elmokit.tasks.formats.senses import SenseInventory, SenseOccurrence, SenseSentence

TEST_SET = -1
"""Instead of the number of a document: words of the test set, which no document contains."""


@dataclass(frozen=True, kw_only=True)
class LemmaGroup:
    """The R words of a lemma and part of speech: the corpus, document by document, then the test.

    Their K candidates are the senses that the corpus has, in the order of the inventory.
    """

    rows: slice
    """Of these words among all words."""
    num_corpus: int
    """How many of them are from the corpus."""
    documents: NDArray[np.int64]
    """(R,) the numbers of their documents, or `TEST_SET`."""
    is_gold: NDArray[np.bool_]
    """(R, K) whether a word has a sense."""
    frequencies: NDArray[np.int64]
    """(R, K) how often the documents other than the word's have a sense."""

    def document_runs(self) -> Iterable[slice]:
        """Yield the words of each document, then those of the test set."""
        edges = np.flatnonzero(np.diff(self.documents)) + 1
        limits = [0, *edges.tolist(), len(self.documents)]
        return map(slice, limits[:-1], limits[1:])

    @property
    def is_ambiguous(self) -> bool:
        """Whether vectors have anything to decide."""
        return self.is_gold.shape[1] > 1


@dataclass(frozen=True, slots=True)
class _Entry:
    document: int
    unit: int
    word: SenseOccurrence


class SenseWords:
    """All W words of a corpus and a test set, lemma by lemma.

    Args:
        corpus: Annotated documents.
        test: Another text.
        inventory: Order of the senses; its first sense is the answer where the corpus has none.
    """

    def __init__(
        self,
        corpus: Sequence[SenseSentence],
        test: Sequence[SenseSentence],
        inventory: SenseInventory,
    ) -> None:
        self.corpus, self.test = corpus, test
        by_lemma, self.num_documents = _entries(corpus, test)
        self.groups: list[LemmaGroup] = []
        self.corpus_rows: dict[str, int] = {}
        """Names of ambiguous words of the corpus -> their rows among all words."""
        self.test_rows: dict[str, int] = {}
        """The same for the test set."""
        entries: list[_Entry] = []
        for (lemma, pos), members in by_lemma.items():
            order = [sense.sense_key for sense in inventory.senses(lemma, pos)]
            group = _group(members, order, start=len(entries))
            if group.is_ambiguous:
                for row, entry in enumerate(members, len(entries)):
                    is_test = entry.document == TEST_SET
                    (self.test_rows if is_test else self.corpus_rows)[entry.word.name] = row
            self.groups.append(group)
            entries += members
        self.is_test = np.array([entry.document == TEST_SET for entry in entries], dtype=bool)
        """(W,) whether a word is in the test set."""
        self.units = np.array([entry.unit for entry in entries], dtype=np.int64)
        """(W,) the number of a word's document in the corpus, or of its sentence in the test."""
        firsts = [inventory.first_sense(entry.word.lemma, entry.word.pos) for entry in entries]
        pairs = zip(firsts, entries, strict=True)
        self.first_is_gold = np.array([key in entry.word.sense_keys for key, entry in pairs], bool)
        """(W,) whether the inventory's first sense is correct."""
        self.has_first = np.array([key is not None for key in firsts], dtype=bool)
        """(W,) whether the inventory has the lemma."""
        known = [group.frequencies.any(axis=1) for group in self.groups]
        self.has_candidates = np.concatenate([*known, np.zeros(0, dtype=bool)])
        """(W,) whether another document of the corpus has the lemma."""

    def __len__(self) -> int:
        return len(self.units)


def _entries(
    corpus: Sequence[SenseSentence], test: Sequence[SenseSentence]
) -> tuple[dict[tuple[str, str], list[_Entry]], int]:
    """Return the words of each lemma and part of speech in order, and the number of documents."""
    by_lemma: dict[tuple[str, str], list[_Entry]] = {}
    numbers: dict[str, int] = {}
    for sentence in corpus:
        document = numbers.setdefault(sentence.document, len(numbers))
        for word in sentence.occurrences:
            entry = _Entry(document, document, word)
            by_lemma.setdefault((lemma_of(word), word.pos), []).append(entry)
    for members in by_lemma.values():
        members.sort(key=lambda entry: entry.document)
    for number, sentence in enumerate(test):
        for word in sentence.occurrences:
            entry = _Entry(TEST_SET, number, word)
            by_lemma.setdefault((lemma_of(word), word.pos), []).append(entry)
    return by_lemma, len(numbers)


def _group(members: Sequence[_Entry], order: Sequence[str], *, start: int) -> LemmaGroup:
    documents = np.array([entry.document for entry in members], dtype=np.int64)
    num_corpus = int((documents != TEST_SET).sum())
    ranks = {sense: rank for rank, sense in enumerate(order)}
    senses = {sense for entry in members[:num_corpus] for sense in entry.word.sense_keys}
    candidates = sorted(senses, key=lambda sense: (ranks.get(sense, len(ranks)), sense))
    is_gold = np.array(
        [[sense in entry.word.sense_keys for sense in candidates] for entry in members], dtype=bool
    ).reshape(len(members), len(candidates))
    frequencies = np.tile(is_gold[:num_corpus].sum(axis=0), (len(members), 1))
    for document in np.unique(documents[:num_corpus]):
        own = documents == document
        frequencies[own] -= is_gold[own].sum(axis=0)
    return LemmaGroup(
        rows=slice(start, start + len(members)), num_corpus=num_corpus,
        documents=documents, is_gold=is_gold, frequencies=frequencies,
    )  # fmt: skip


def lemma_of(occurrence: SenseOccurrence) -> str:
    """Return the lemma in lower case, with spaces between the words of an expression."""
    return occurrence.lemma.replace("_", " ").lower()


def occurrence_vectors(
    source: VectorSource, sentences: Iterable[SenseSentence], wanted: Collection[str]
) -> Iterator[tuple[SenseOccurrence, Float[np.ndarray, "S X"]]]:
    """Yield the annotated words with a ``wanted`` name and their vectors, one per name of a source.

    Sentences without such a word are not embedded. The vector of an expression is the mean of its
    words.
    """
    read = [one for one in sentences if any(word.name in wanted for word in one.occurrences)]
    stream = source.stream([sentence.tokens for sentence in read])
    for sentence, vectors in zip(read, stream, strict=True):
        for word in sentence.occurrences:
            if word.name in wanted:
                yield word, vectors[:, word.start : word.end].mean(axis=1)
