"""Do the nearest occurrences of a word share its sense and its part of speech?

For a sample of ambiguous lemmas, each occurrence is compared with all others of its lemma. The
share of its k nearest with its sense, or its part of speech, is compared with chance. Table 4 also
shows examples: occurrences of a word in two senses, and the occurrences nearest to them.

Source: Peters et al. 2018, section 5.3 and table 4; the shares are its automatic form.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import NDArray

from elmokit.errors import InputError
from elmokit.metrics.accuracy import accuracy_of
from elmokit.probes.data import find_sense_corpus
from elmokit.probes.neighbors import (
    Neighborhood,
    Occurrence,
    SentenceEmbedder,
    is_same_text,
    neighborhoods,
    unit_rows,
)
from elmokit.probes.probe import Figure, Probe, words_of
from elmokit.probes.senses import lemma_of, occurrence_vectors
from elmokit.probes.vector_sources import VectorSource, check_names
from elmokit.tasks.formats.senses import SenseOccurrence, SenseSentence

READABLE_WORDS = range(8, 31)
"""Lengths of sentences that are preferred as queries."""


@dataclass(frozen=True, kw_only=True)
class NeighborScore:
    """Precision at k in percent, also of a random order."""

    name: str
    """Of the representation."""
    sense: float
    """Share of the k nearest that have a sense of the occurrence."""
    sense_chance: float
    pos: float
    """Share of the k nearest with its part of speech, for lemmas with several."""
    pos_chance: float
    k: int
    num_queries: int
    """Occurrences of lemmas with several senses."""
    num_pos_queries: int
    """Those whose lemma has several parts of speech."""
    sense_counts: NDArray[np.float64] = field(repr=False, compare=False)
    """A row per lemma: hits, neighbors; for `elmokit.metrics.significance` with `accuracy_of`."""
    pos_counts: NDArray[np.float64] = field(repr=False, compare=False)
    """The same for parts of speech."""


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

    Returns:
        A score per name, in the order of the sources.
    """
    check_names(sources)
    if k < 1 or num_lemmas < 1 or max_occurrences <= k:
        raise InputError(
            f"`k` and `num_lemmas` must be at least 1 and `max_occurrences` above `k`, got k={k}, "
            f"num_lemmas={num_lemmas}, max_occurrences={max_occurrences}."
        )
    lemmas = _draw_lemmas(sentences, k, num_lemmas, max_occurrences, seed)
    wanted = {word.name for words in lemmas for word in words}
    scores: list[NeighborScore] = []
    for source in sources:
        vectors = {word.name: x for word, x in occurrence_vectors(source, sentences, wanted)}
        for way, name in enumerate(source.names):
            rows = [np.stack([vectors[word.name][way] for word in words]) for words in lemmas]
            scores.append(_score(name, lemmas, [_nearest(unit_rows(x), k) for x in rows]))
    return tuple(scores)


def _draw_lemmas(
    sentences: Sequence[SenseSentence], k: int, num_lemmas: int, max_occurrences: int, seed: int
) -> list[list[SenseOccurrence]]:
    """Return the occurrences of each sampled lemma."""
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
        raise InputError(
            f"No lemma has several senses and more than {k} occurrences. Give a larger corpus or a "
            "smaller `k`."
        )
    random = np.random.default_rng(seed)
    sample = []
    for number in sorted(random.permutation(len(fit))[:num_lemmas].tolist()):
        words = by_lemma[fit[number]]
        drawn = random.permutation(len(words))[:max_occurrences]
        sample.append([words[index] for index in sorted(drawn.tolist())])
    return sample


def _nearest(x: Float[np.ndarray, "N X"], k: int) -> NDArray[np.int64]:
    """Return the k nearest other rows of each row: (N, k)."""
    similarity = x @ x.T  # (N, N)
    np.fill_diagonal(similarity, -np.inf)
    return (-similarity).argsort(axis=1, kind="stable")[:, :k]


def _score(
    name: str, lemmas: Sequence[Sequence[SenseOccurrence]], nearest: Sequence[NDArray[np.int64]]
) -> NeighborScore:
    has_several = [len({word.pos for word in words}) > 1 for words in lemmas]
    sense, sense_chance, sense_counts = _precision(map(_same_sense, lemmas), nearest)
    with_several = [words for words, several in zip(lemmas, has_several, strict=True) if several]
    pos, pos_chance, pos_counts = _precision(
        map(_same_pos, with_several),
        [rows for rows, several in zip(nearest, has_several, strict=True) if several],
    )
    return NeighborScore(
        name=name, k=nearest[0].shape[1], sense=sense, sense_chance=sense_chance,
        pos=pos, pos_chance=pos_chance, num_queries=sum(map(len, lemmas)),
        num_pos_queries=sum(map(len, with_several)),
        sense_counts=sense_counts, pos_counts=pos_counts,
    )  # fmt: skip


def _same_sense(words: Sequence[SenseOccurrence]) -> Bool[np.ndarray, "N N"]:
    keys = [set(word.sense_keys) for word in words]
    return np.array([[not own.isdisjoint(other) for other in keys] for own in keys])


def _same_pos(words: Sequence[SenseOccurrence]) -> Bool[np.ndarray, "N N"]:
    tags = np.array([word.pos for word in words])
    return tags[:, None] == tags


def _precision(
    matches: Iterable[Bool[np.ndarray, "N N"]], nearest: Sequence[NDArray[np.int64]]
) -> tuple[float, float, NDArray[np.float64]]:
    """Return precision and chance in percent, and a row per lemma: hits, neighbors."""
    counts: list[tuple[float, float]] = []
    expected, num_queries = 0.0, 0
    for same, neighbors in zip(matches, nearest, strict=True):
        hits = np.take_along_axis(same, neighbors, axis=1)  # (N, k)
        counts.append((float(hits.sum()), float(hits.size)))
        expected += float((same.sum(axis=1) - 1).sum()) / (len(same) - 1)  # without themselves
        num_queries += len(same)
    rows = np.array(counts).reshape(-1, 2)
    chance = 100 * expected / num_queries if num_queries else 0.0
    return float(accuracy_of(rows.sum(axis=0))), chance, rows


def occurrences_in_senses(
    sentences: Sequence[SenseSentence], lemma: str, *, pos: str | None = None
) -> list[Occurrence]:
    """Return the annotated occurrences of a lemma of one word, with their sense keys.

    One per distinct sentence, of any part of speech or one; several keys of an occurrence are
    joined by spaces.
    """
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

    They are the most frequent senses of the two most frequent supersenses. Of a sense, the first
    occurrence in a readable sentence is taken.
    """
    possible = [one for one in occurrences if one.word == word and " " not in one.sense]
    supersenses = Counter(supersense(one.sense) for one in possible).most_common(2)
    if len(supersenses) < 2:
        raise InputError(
            f"The corpus has no two senses of {word!r} that are far apart. Give SemCor."
        )
    first, second = (
        _first_of_most_frequent([one for one in possible if supersense(one.sense) == name])
        for name, _ in supersenses
    )
    return first, second


def supersense(key: str) -> str:
    """Return the coarse class of a WordNet sense key, its part of speech and lexicographer file.

    ``1:04`` (nouns of acts) of ``play%1:04:05::``; a key of another form is its own class.
    """
    return ":".join(key.partition("%")[2].split(":")[:2]) or key


def _first_of_most_frequent(occurrences: Sequence[Occurrence]) -> Occurrence:
    ((sense, _),) = Counter(one.sense for one in occurrences).most_common(1)
    own = [one for one in occurrences if one.sense == sense]
    return min(own, key=lambda one: len(one.tokens) not in READABLE_WORDS)


def neighbors_of_query(
    embedder: SentenceEmbedder,
    query: Occurrence,
    occurrences: Sequence[Occurrence],
    *,
    num_neighbors: int = 3,
) -> Neighborhood:
    """Return the nearest of the occurrences by the top layer, never one in the query's own text."""
    others = [one for one in occurrences if not is_same_text(query.tokens, one.tokens)]
    return neighborhoods(embedder, [query, *others], of_first=1, num_neighbors=num_neighbors)[0]


PROBE = Probe(
    find=lambda data, test: find_sense_corpus(data),
    read=lambda files, tokenize, units: files.read(),
    words=words_of,
    measure=lambda sources, data, seed, device: precision_at_k(sources, data, seed=seed),
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
