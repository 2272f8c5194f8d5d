"""Whether nearest occurrences share sense and part of speech, and examples of this.

For a sample of ambiguous lemmas, the share of the k nearest occurrences of the lemma with the same
sense, or part of speech, is compared with chance: the automatic form of Peters et al. 2018, section
5.3 and table 4. Examples of this table are occurrences of a word in two senses with their nearest.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmokit.errors import InputError
from elmokit.metrics.lexical_change import unit_rows
from elmokit.metrics.task_scores import accuracy_of, percent
from elmokit.probes.inputs import VectorSource, occurrence_vectors, read_sense_corpus
from elmokit.probes.neighbors import Neighborhood, Occurrence, is_same_text, neighborhoods
from elmokit.probes.probe import Figure, Probe, words_of
from elmokit.shapes import Bool, Float
from elmokit.tasks.formats.senses import SenseOccurrence, SenseSentence, lemma_key

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
            pos, pos_chance, _, num_pos_queries = _precision(
                same_pos, [nearest[number] for number in with_several]
            )
            scores.append(NeighborScore(
                name=name, k=k, sense=sense, sense_chance=sense_chance, pos=pos,
                pos_chance=pos_chance, num_queries=num_queries, num_pos_queries=num_pos_queries,
                sense_counts=sense_counts,
            ))  # fmt: skip
    return tuple(scores)


def _draw_lemmas(
    sentences: Sequence[SenseSentence], k: int, num_lemmas: int, max_occurrences: int, seed: int
) -> list[list[SenseOccurrence]]:
    by_lemma: defaultdict[str, list[SenseOccurrence]] = defaultdict(list)
    for sentence in sentences:
        for word in sentence.occurrences:
            by_lemma[lemma_key(word.lemma)].append(word)
    ambiguous = [
        words
        for _, words in sorted(by_lemma.items())
        if len(words) > k and not set.intersection(*(set(word.sense_keys) for word in words))
    ]
    if not ambiguous:
        raise InputError(f"No lemma has several senses and over {k} occurrences: add text.")
    random = np.random.default_rng(seed)

    def drawn(items: list[Any], most: int) -> list[Any]:
        # sorted after the draw: the order of a sample is that of the corpus, whatever its size
        return [items[number] for number in sorted(random.permutation(len(items))[:most].tolist())]

    return [drawn(words, max_occurrences) for words in drawn(ambiguous, num_lemmas)]


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
            is_wanted = lemma_key(word.lemma) == lemma and pos in (None, word.pos)
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

    def example(occurrences: list[Occurrence]) -> Occurrence:
        ((sense, _),) = Counter(one.sense for one in occurrences).most_common(1)
        own = [one for one in occurrences if one.sense == sense]
        return min(own, key=lambda one: len(one.tokens) not in READABLE_WORDS)

    # a stable sort: of equally frequent ones the first in the text
    first, second, *_ = sorted(classes.values(), key=len, reverse=True)
    return example(first), example(second)


def supersense(key: str) -> str:
    """Return the coarse class of a WordNet sense key, its part of speech and lexicographer file.

    ``1:04`` (nouns of acts) of ``play%1:04:05::``; a key of another form is its own class.
    """
    return ":".join(key.partition("%")[2].split(":")[:2]) or key


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
    read=lambda data, test, units: read_sense_corpus(data),
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
)  # fmt: skip
