"""Do the nearest occurrences of a word share its sense and its part of speech?

For a sample of ambiguous lemmas, each occurrence is compared with all others of its lemma. The
share of its k nearest with its sense, or its part of speech, is compared with chance.

Source: the automatic form of Peters et al. 2018, table 4.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import NDArray

from elmokit.errors import InputError
from elmokit.metrics.accuracy import accuracy_of
from elmokit.probes.data import find_sense_corpus
from elmokit.probes.occurrences import lemma_of, occurrence_vectors
from elmokit.probes.probe import Figure, Probe, words_of
from elmokit.probes.rows import unit_rows
from elmokit.probes.vector_sources import VectorSource, check_names
from elmokit.tasks.formats.senses import SenseOccurrence, SenseSentence


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

    Raises:
        InputError: if representations share a name or there is none, ``k`` or a limit is too small,
            or no lemma has several senses.
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
        chosen = random.permutation(len(words))[:max_occurrences]
        sample.append([words[index] for index in sorted(chosen.tolist())])
    return sample


def _nearest(x: Float[np.ndarray, "N X"], k: int) -> NDArray[np.int64]:
    """Return the k nearest other rows of each row: (N, k)."""
    similarity = x @ x.T  # (N, N)
    np.fill_diagonal(similarity, -np.inf)
    return (-similarity).argsort(axis=1, kind="stable")[:, :k]


def _score(
    name: str, lemmas: Sequence[Sequence[SenseOccurrence]], nearest: Sequence[NDArray[np.int64]]
) -> NeighborScore:
    senses, parts = _Tally(), _Tally()
    for words, neighbors in zip(lemmas, nearest, strict=True):
        senses.add(_same_sense(words), neighbors)
        tags = np.array([word.pos for word in words])
        if len(set(tags.tolist())) > 1:
            parts.add(tags[:, None] == tags, neighbors)
    return NeighborScore(
        name=name, k=nearest[0].shape[1],
        sense=senses.precision, sense_chance=senses.chance,
        pos=parts.precision, pos_chance=parts.chance,
        num_queries=senses.num_queries, num_pos_queries=parts.num_queries,
        sense_counts=np.array(senses.counts).reshape(-1, 2),
        pos_counts=np.array(parts.counts).reshape(-1, 2),
    )  # fmt: skip


def _same_sense(words: Sequence[SenseOccurrence]) -> Bool[np.ndarray, "N N"]:
    keys = [set(word.sense_keys) for word in words]
    return np.array([[not one.isdisjoint(other) for other in keys] for one in keys])


class _Tally:
    """Counts hits, lemma by lemma."""

    def __init__(self) -> None:
        self.counts: list[tuple[float, float]] = []
        self.num_queries = 0
        self._expected = 0.0

    def add(self, same: Bool[np.ndarray, "N N"], nearest: NDArray[np.int64]) -> None:
        hits = np.take_along_axis(same, nearest, axis=1)  # (N, k)
        self.counts.append((float(hits.sum()), float(hits.size)))
        others = same.sum(axis=1) - 1
        self._expected += float(others.sum()) / (len(same) - 1)
        self.num_queries += len(same)

    @property
    def precision(self) -> float:
        return float(accuracy_of(np.array(self.counts).reshape(-1, 2).sum(axis=0)))

    @property
    def chance(self) -> float:
        """Mean share of the other occurrences that match."""
        return 100 * self._expected / self.num_queries if self.num_queries else 0.0


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
