"""Annotated senses of words, and whether nearest occurrences share sense and part of speech.

For a sample of ambiguous lemmas, the share of the k nearest occurrences of the lemma with the same
sense, or part of speech, is compared with chance: the automatic form of Peters et al. 2018, section
5.3 and table 4. Examples of this table are occurrences of a word in two senses with their nearest.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmokit.errors import InputError
from elmokit.metrics.task_scores import accuracy_of, percent
from elmokit.probes.inputs import (
    VectorSource,
    check_names,
    find_sense_corpus,
    lemma_of,
    occurrence_vectors,
)
from elmokit.probes.neighbors import (
    Neighborhood,
    Occurrence,
    is_same_text,
    neighborhoods,
    unit_rows,
)
from elmokit.probes.probe import Figure, Probe, words_of
from elmokit.shapes import Bool, Float
from elmokit.tasks.formats.senses import SenseInventory, SenseOccurrence, SenseSentence

READABLE_WORDS = range(8, 31)
"""Lengths of sentences that are preferred as queries."""


@dataclass(frozen=True, kw_only=True)
class NeighborScore:
    """Precision at k in percent, also of a random order."""

    name: str
    sense: float
    """Share of the k nearest that have a sense of the occurrence."""
    sense_chance: float
    pos: float
    """Share of the k nearest with its part of speech, for lemmas with several."""
    pos_chance: float
    k: int
    num_queries: int
    num_pos_queries: int
    sense_counts: NDArray[np.float64] = field(repr=False, compare=False)
    """A row per lemma: hits, neighbors; for `elmokit.metrics.bootstrap` with `accuracy_of`."""
    pos_counts: NDArray[np.float64] = field(repr=False, compare=False)


def precision_at_k(
    sources: Sequence[VectorSource],
    sentences: Sequence[SenseSentence],
    *,
    k: int = 5,
    num_lemmas: int = 300,
    max_occurrences: int = 100,
    seed: int = 0,
) -> tuple[NeighborScore, ...]:
    """Score the k nearest occurrences of a lemma by cosine; a shared sense key is the same sense.

    At most ``num_lemmas`` lemmas with several senses and more than ``k`` occurrences are drawn, and
    ``max_occurrences`` of each; all representations share the sample.
    """
    check_names(sources)
    lemmas = _draw_lemmas(sentences, k, num_lemmas, max_occurrences, seed)
    same_sense = list(map(_same_sense, lemmas))
    tags = [np.array([word.pos for word in words]) for words in lemmas]
    # of a lemma with one part of speech, all neighbors have it: they say nothing of vectors
    with_several = [number for number, own in enumerate(tags) if len(set(own)) > 1]
    same_pos = [tags[number][:, None] == tags[number] for number in with_several]
    wanted = {word.name for words in lemmas for word in words}
    scores: list[NeighborScore] = []
    for source in sources:
        vectors = {word.name: x for word, x in occurrence_vectors(source, sentences, wanted)}
        for way, name in enumerate(source.names):
            rows = [np.stack([vectors[word.name][way] for word in words]) for words in lemmas]
            nearest = [_nearest(unit_rows(x), k) for x in rows]
            sense, sense_chance, sense_counts, num_queries = _precision(same_sense, nearest)
            pos, pos_chance, pos_counts, num_pos_queries = _precision(
                same_pos, [nearest[number] for number in with_several]
            )
            scores.append(NeighborScore(
                name=name, k=k, sense=sense, sense_chance=sense_chance, pos=pos,
                pos_chance=pos_chance, num_queries=num_queries, num_pos_queries=num_pos_queries,
                sense_counts=sense_counts, pos_counts=pos_counts,
            ))  # fmt: skip
    return tuple(scores)


def _draw_lemmas(
    sentences: Sequence[SenseSentence], k: int, num_lemmas: int, max_occurrences: int, seed: int
) -> list[list[SenseOccurrence]]:
    by_lemma: dict[str, list[SenseOccurrence]] = {}
    for sentence in sentences:
        for word in sentence.occurrences:
            by_lemma.setdefault(lemma_of(word), []).append(word)
    fit = [
        lemma
        for lemma, words in sorted(by_lemma.items())
        if len(words) > k and not set.intersection(*(set(word.sense_keys) for word in words))
    ]
    if not fit:
        raise InputError(f"No lemma has several senses and over {k} occurrences: add text.")
    # sorted after the draw: the order of a sample is that of the corpus, whatever its size
    random = np.random.default_rng(seed)
    sample = []
    for number in sorted(random.permutation(len(fit))[:num_lemmas].tolist()):
        words = by_lemma[fit[number]]
        drawn = random.permutation(len(words))[:max_occurrences]
        sample.append([words[index] for index in sorted(drawn.tolist())])
    return sample


def _nearest(x: Float[np.ndarray, "N X"], k: int) -> NDArray[np.int64]:
    similarity = x @ x.T  # (N, N)
    np.fill_diagonal(similarity, -np.inf)
    return (-similarity).argsort(axis=1, kind="stable")[:, :k]


def _same_sense(words: Sequence[SenseOccurrence]) -> Bool[np.ndarray, "N N"]:
    keys = [set(word.sense_keys) for word in words]
    return np.array([[not own.isdisjoint(other) for other in keys] for own in keys])


def _precision(
    matches: Sequence[Bool[np.ndarray, "_ _"]], nearest: Sequence[NDArray[np.int64]]
) -> tuple[float, float, NDArray[np.float64], int]:
    """Return precision, that of a random order, hits and neighbors by lemma, and queries."""
    counts, expected = np.zeros((len(matches), 2)), 0.0
    for row, (same, neighbors) in enumerate(zip(matches, nearest, strict=True)):
        hits = np.take_along_axis(same, neighbors, axis=1)  # (N, k)
        counts[row] = hits.sum(), hits.size
        expected += (same.sum() - len(same)) / (len(same) - 1)  # without themselves
    num_queries = sum(map(len, matches))
    chance = float(percent(expected, num_queries))
    return float(accuracy_of(counts.sum(axis=0))), chance, counts, num_queries


def occurrences_in_senses(
    sentences: Sequence[SenseSentence], lemma: str, *, pos: str | None = None
) -> list[Occurrence]:
    """Return the annotated occurrences of a one-word lemma, one per distinct sentence."""
    occurrences: dict[tuple[str, ...], Occurrence] = {}
    for sentence in sentences:
        for word in sentence.occurrences:
            is_wanted = lemma_of(word) == lemma and pos in (None, word.pos)
            if is_wanted and word.end == word.start + 1:
                keys = " ".join(word.sense_keys)
                occurrence = Occurrence(sentence.tokens, word.start, sense=keys)
                occurrences.setdefault(sentence.tokens, occurrence)
    return list(occurrences.values())


def queries_of(occurrences: Sequence[Occurrence], word: str) -> tuple[Occurrence, Occurrence]:
    """Return an occurrence of ``word`` in each of two senses that are far apart.

    They are the most frequent senses of the two most frequent supersenses.
    """
    classes: dict[str, list[Occurrence]] = {}
    for occurrence in occurrences:
        if occurrence.word == word and " " not in occurrence.sense:
            classes.setdefault(supersense(occurrence.sense), []).append(occurrence)
    if len(classes) < 2:
        raise InputError(f"The corpus has no two senses of {word!r} far apart. Give SemCor.")
    # a stable sort: of equally frequent ones the first in the text
    first, second, *_ = sorted(classes.values(), key=len, reverse=True)
    return _first_of_most_frequent(first), _first_of_most_frequent(second)


def supersense(key: str) -> str:
    """Return the coarse class of a WordNet sense key, its part of speech and lexicographer file.

    ``1:04`` (nouns of acts) of ``play%1:04:05::``; a key of another form is its own class.
    """
    return ":".join(key.partition("%")[2].split(":")[:2]) or key


def _first_of_most_frequent(occurrences: Sequence[Occurrence]) -> Occurrence:
    ((sense, _),) = Counter(word.sense for word in occurrences).most_common(1)
    own = [word for word in occurrences if word.sense == sense]
    return min(own, key=lambda word: len(word.tokens) not in READABLE_WORDS)


def neighbors_of_query(
    embedder: Any,
    query: Occurrence,
    occurrences: Sequence[Occurrence],
    *,
    num_neighbors: int = 3,
) -> Neighborhood:
    """Return the nearest occurrences by the top layer, never one in the query's own text."""
    others = [word for word in occurrences if not is_same_text(query.tokens, word.tokens)]
    return neighborhoods(embedder, [query, *others], of_first=1, num_neighbors=num_neighbors)[0]


PROBE = Probe(
    find=lambda data, test: find_sense_corpus(data),
    read=lambda files, tokenize, units: files.read(),
    words=words_of,
    measure=lambda sources, data, seed: precision_at_k(sources, data, seed=seed),
    columns={
        "sense": "same sense", "sense_chance": "by chance",
        "pos": "same part of speech", "pos_chance": "by chance ",
    },
    note="percent of the {k} nearest among the lemma's occurrences: {num_queries:,} words, "
    "{num_pos_queries:,} of them of lemmas with several parts of speech",
    counts="sense_counts",
    figures=(Figure("sense", accuracy_of),),
    is_tokenized=True,
)  # fmt: skip


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
