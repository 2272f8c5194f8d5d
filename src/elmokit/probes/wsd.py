"""Word senses by vectors of an annotated corpus: how much meaning in context a layer captures.

A word gets one of the senses that the corpus has for its lemma and part of speech: that of the
nearest centroid (the mean vector of a sense), that of the nearest annotated word (1-NN), or the
best by 1-NN with the prior, cosine of its nearest word + w ln p(sense). The weight w is chosen on
the corpus alone; documents of the corpus, SemCor, are also test sets, by all others of them.
Source: Peters et al. 2018, section 5.3 and table 5 (centroids); candidates as in Raganato et al.
2017.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from elmokit.files.atomic import named, reserve
from elmokit.files.temporary import scratch_directory
from elmokit.metrics.lexical_change import unit_rows
from elmokit.metrics.task_scores import f1_of
from elmokit.probes.inputs import VectorSource, occurrence_vectors, read_sense_data
from elmokit.probes.probe import Figure, Probe, words_of
from elmokit.shapes import Bool, Float, Int
from elmokit.tasks.formats.senses import (
    SenseInventory,
    SenseOccurrence,
    SenseSentence,
    lemma_key,
)

FIRST_SENSE, MOST_FREQUENT = "first sense", "most frequent sense"
"""Baselines: the inventory's first sense, and the most frequent one of the (other) documents."""
FIGURES = tuple(
    Figure(name, f1_of, slice(3 * number, 3 * number + 3))
    for number, name in enumerate((
        "f1", "nearest_f1", "prior_f1", "semcor_f1", "semcor_nearest_f1", "semcor_prior_f1",
    ))
)  # fmt: skip
"""By centroid, 1-NN and 1-NN with the prior: on the test set, then on the corpus."""
PRIOR_WEIGHTS = (0.0, *(2.0**power for power in range(-8, 1)))
"""Possible weights of ln p(sense) beside the cosine of 1-NN; with 0 there is no prior."""
TIE_TOLERANCE = 1e-5
"""Scores this close are equal: vectors are computed to about 1e-6, so less is rounding."""
_QUERIES_TOGETHER = 512


@dataclass(frozen=True, kw_only=True)
class WsdScore:
    """Share of annotated words that get one of their gold senses, in percent.

    F1 equals the accuracy if every word is answered. ``semcor_…`` are of the corpus, one document
    left out at a time. Baselines have one answer, and None by 1-NN.
    """

    name: str
    f1: float | None
    nearest_f1: float | None
    prior_f1: float | None
    semcor_f1: float | None
    semcor_nearest_f1: float | None
    semcor_prior_f1: float | None
    prior_weight: float | None
    """w on the test set."""
    num_ties: Mapping[str, int]
    num_instances: int
    num_backed_off: int
    """Answered with the inventory's first sense, because no (other) document has the lemma."""
    num_unanswered: int
    semcor_num_instances: int
    semcor_num_backed_off: int
    semcor_num_unanswered: int
    counts: NDArray[np.float64] = field(repr=False, compare=False)
    """A row per sentence of the test set, then one per document of the corpus. Three columns for
    each of `FIGURES`: correct, answered, all."""


class LemmaGroup:
    """The R words of a lemma and part of speech: those of the corpus, then those of the test set.

    Their K candidates are the senses that the corpus has, in the order of the inventory.
    ``places`` are the sentences of the test set, and after these the documents of the corpus.
    """

    def __init__(
        self,
        words: Sequence[SenseOccurrence],
        places: Int[np.ndarray, " R"],
        order: Sequence[str],
        *,
        num_test: int,
        start: int,
    ) -> None:
        self.rows, self.places = slice(start, start + len(words)), places
        self.num_corpus = num_corpus = int((places >= num_test).sum())
        ranks = {sense: rank for rank, sense in enumerate(order)}
        senses = {sense for word in words[:num_corpus] for sense in word.sense_keys}
        candidates = sorted(senses, key=lambda sense: (ranks.get(sense, len(ranks)), sense))
        self.is_gold = np.array(
            [[sense in word.sense_keys for sense in candidates] for word in words], dtype=bool
        ).reshape(len(words), len(candidates))  # (R, K)
        self.is_ambiguous = len(candidates) > 1
        # what a word may know of its lemma: all annotations but those of its own document
        self.frequencies = np.tile(self.is_gold[:num_corpus].sum(axis=0), (len(words), 1))  # (R, K)
        for own in self.documents():
            self.frequencies[own] -= self.is_gold[own].sum(axis=0)

    def documents(self) -> list[Bool[np.ndarray, " R"]]:
        """Tell for each document of the corpus which words are in it."""
        return [self.places == place for place in np.unique(self.places[: self.num_corpus])]


class SenseWords:
    """All W words of a corpus and a test set, lemma by lemma."""

    def __init__(
        self,
        corpus: Sequence[SenseSentence],
        test: Sequence[SenseSentence],
        inventory: SenseInventory,
    ) -> None:
        self.num_test = len(test)
        names = dict.fromkeys(sentence.document for sentence in corpus)
        self.num_documents = len(names)
        place_of = {name: place for place, name in enumerate(names, self.num_test)}
        placed = [(place_of[sentence.document], sentence) for sentence in corpus]
        by_lemma: defaultdict[tuple[str, str], list[tuple[int, SenseOccurrence]]] = defaultdict(
            list
        )
        for place, sentence in (*placed, *enumerate(test)):
            for word in sentence.occurrences:
                by_lemma[lemma_key(word.lemma), word.pos].append((place, word))
        self.places = np.array([n for group in by_lemma.values() for n, _ in group], dtype=np.int64)
        self.is_test = self.places < self.num_test
        words = [word for group in by_lemma.values() for _, word in group]
        self.groups: list[LemmaGroup] = []
        # rows of the ambiguous words; the corpus and the test set may have the same names
        self.parts: tuple[tuple[Sequence[SenseSentence], dict[str, int]], ...]
        self.parts = (corpus, {}), (test, {})
        start = 0
        for (lemma, pos), members in by_lemma.items():
            order = [sense.sense_key for sense in inventory.senses(lemma, pos)]
            rows = slice(start, start + len(members))
            group = LemmaGroup(
                words[rows], self.places[rows], order, num_test=self.num_test, start=start
            )
            self.groups.append(group)
            for row in range(start, rows.stop) if group.is_ambiguous else ():
                self.parts[int(self.is_test[row])][1][words[row].name] = row
            start = rows.stop
        firsts = [inventory.first_sense(word.lemma, word.pos) for word in words]
        pairs = zip(firsts, words, strict=True)
        self.first_is_gold = np.array([key in word.sense_keys for key, word in pairs], dtype=bool)
        self.has_first = np.array([key is not None for key in firsts], dtype=bool)
        known = [group.frequencies.any(axis=1) for group in self.groups]
        self.has_candidates = np.concatenate([*known, np.zeros(0, dtype=bool)])

    def __len__(self) -> int:
        return len(self.places)


def disambiguate(
    sources: Sequence[VectorSource],
    corpus: Sequence[SenseSentence],
    test: Sequence[SenseSentence],
    inventory: SenseInventory,
) -> tuple[WsdScore, ...]:
    """Disambiguate the words of ``test``, and those of ``corpus`` with their document left out.

    Any gold sense is correct; ties go to the sense that the inventory lists first. Returns the
    baselines `FIRST_SENSE` and `MOST_FREQUENT`, then a score per name, in the order of the sources.
    """
    words = SenseWords(corpus, test, inventory)
    first, no_tie = words.first_is_gold[None], np.zeros((1, len(words)), dtype=bool)
    frequent = _decide_all(words, (1,), lambda group: _frequency_scores(group)[None])
    scores = [
        _score(words, FIRST_SENSE, first, no_tie, uses_corpus=False),
        _score(words, MOST_FREQUENT, *frequent),
    ]
    for source in sources:
        scores += _scores_by_vectors(words, source)
    return tuple(scores)


def _scores_by_vectors(words: SenseWords, source: VectorSource) -> list[WsdScore]:
    weights, num_names = np.array(PRIOR_WEIGHTS), len(source.names)

    def score(group: LemmaGroup) -> NDArray[np.float64]:  # (S, 1 + weights, R, K)
        if group.is_ambiguous:
            x = np.asarray(table[:, group.rows])  # (S, R, X)
            centroid, nearest = _centroid_scores(x, group), _nearest_scores(x, group)
        else:  # every method takes the only sense, if there is one
            only = _frequency_scores(group)
            centroid = nearest = np.broadcast_to(only, (num_names, *only.shape))
        with_prior = nearest[:, None] + weights[:, None, None] * _log_prior(group)
        return np.concatenate([centroid[:, None], with_prior], axis=1)

    # `score` reads the table, lemma by lemma: all vectors of SemCor need not fit in memory
    with _vector_table(source, words) as table:
        decisions = _decide_all(words, (num_names, 1 + len(weights)), score)
    scores, every = [], np.arange(len(words))
    for name, is_right, is_tie in zip(source.names, *decisions, strict=True):
        best, weight_of_word = _choose_weights(words, is_right[1:])
        right, tie = (
            np.stack([*part[:2], part[1 + weight_of_word, every]]) for part in (is_right, is_tie)
        )
        scores.append(_score(words, name, right, tie, prior_weight=PRIOR_WEIGHTS[best]))
    return scores


def _choose_weights(
    words: SenseWords, is_right: Bool[np.ndarray, "P W"]
) -> tuple[int, Int[np.ndarray, " W"]]:
    """Return the weight of the prior for the test set, and for each word."""
    # the weight for a document is the best on all others: not chosen on what it scores
    in_corpus = ~words.is_test
    documents = words.places[in_corpus] - words.num_test
    by_document = np.stack([
        np.bincount(documents, weights=right[in_corpus], minlength=words.num_documents)
        for right in is_right
    ])  # (P, documents)  # fmt: skip
    total = by_document.sum(axis=1)
    best = int(total.argmax())
    weight_of_word = np.full(len(words), best)
    # leaving a document out is subtracting its row: no second pass over the corpus
    weight_of_word[in_corpus] = (total[:, None] - by_document).argmax(axis=0)[documents]
    return best, weight_of_word


def _decide_all(
    words: SenseWords,
    shape: tuple[int, ...],
    score: Callable[[LemmaGroup], NDArray[np.float64]],
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which words are answered rightly, and which answers are ties: (*shape, W) each."""
    is_right, is_tie = np.zeros((2, *shape, len(words)), dtype=bool)
    for group in words.groups:
        # a lemma with one sense is decided, too: it counts in the scores of all methods
        scores = score(group)
        # one more column, for words without a candidate: the inventory's first sense
        no_candidate = np.full((*scores.shape[:-1], 1), np.finfo(np.float64).min)
        scores = np.concatenate([scores, no_candidate], axis=-1)
        is_best = scores >= scores.max(axis=-1, keepdims=True) - TIE_TOLERANCE
        first_is_gold = words.first_is_gold[group.rows, None]
        is_gold = np.concatenate([group.is_gold, first_is_gold], axis=1)
        # of equals the first
        is_right[..., group.rows] = is_gold[np.arange(len(is_gold)), is_best.argmax(axis=-1)]
        is_tie[..., group.rows] = is_best.sum(axis=-1) > 1
    return is_right, is_tie


def _centroid_scores(
    x: Float[np.ndarray, "S R X"], group: LemmaGroup
) -> Float[np.ndarray, "S R K"]:
    """Return the cosine of each word with the mean vector of each sense.

    Means are those of the other documents: the sums of a document are subtracted from the total.
    A sense that no other document has scores -inf, here and below.
    """
    has_sense, documents = group.is_gold.T.astype(x.dtype), group.documents()  # (K, R)

    def sums(own: Bool[np.ndarray, " R"]) -> Float[np.ndarray, "S K X"]:
        return (has_sense[:, own] @ x[:, own]).astype(np.float64)

    # sums in float64: a sense of thousands of words would otherwise lose the last digits
    total = np.zeros((len(x), len(has_sense), x.shape[2]))  # (S, K, X)
    for own in documents:
        total += sums(own)
    units = unit_rows(x)
    scores = units @ unit_rows(total).swapaxes(1, 2)  # (S, R, K)
    for own in documents:
        scores[:, own] = units[:, own] @ unit_rows(total - sums(own)).swapaxes(1, 2)
    return np.where(group.frequencies > 0, scores, -np.inf)


def _nearest_scores(x: Float[np.ndarray, "S R X"], group: LemmaGroup) -> Float[np.ndarray, "S R K"]:
    """Return the cosine of each word with the nearest word of each sense in other documents."""
    units, in_corpus = unit_rows(x), slice(group.num_corpus)
    corpus = units[:, in_corpus].swapaxes(1, 2)  # (S, X, N)
    has_sense = group.is_gold[in_corpus].T  # (K, N)
    scores = np.full((*x.shape[:2], len(has_sense)), -np.inf)
    # some queries at a time: all cosines of a frequent verb at once would take too much memory
    for start in range(0, x.shape[1], _QUERIES_TOGETHER):
        rows = slice(start, start + _QUERIES_TOGETHER)
        is_own = group.places[rows, None] == group.places[in_corpus]  # (B, N)
        for way in range(len(x)):
            cosines = np.where(is_own, -np.inf, units[way, rows] @ corpus[way])  # (B, N)
            for sense, words in enumerate(has_sense):
                scores[way, rows, sense] = cosines[:, words].max(axis=1, initial=-np.inf)
    return scores


def _frequency_scores(group: LemmaGroup) -> Float[np.ndarray, "R K"]:
    """Return how often the other documents have each sense."""
    return np.where(group.frequencies > 0, group.frequencies, -np.inf)


def _log_prior(group: LemmaGroup) -> Float[np.ndarray, "R K"]:
    """Return ln of the share of each sense among the annotations of the other documents."""
    frequencies = group.frequencies
    totals = np.maximum(frequencies.sum(axis=1, keepdims=True), 1)
    return np.log(np.where(frequencies > 0, frequencies, totals) / totals)


@contextmanager
def _vector_table(source: VectorSource, words: SenseWords) -> Iterator[Float[np.ndarray, "S W X"]]:
    """Yield the vectors of the ambiguous words (zeros for others), mapped from a temporary file."""
    with scratch_directory("elmokit-senses") as folder:
        path = folder / "vectors"
        table = np.zeros((len(source.names), len(words), 0), np.float32)
        for sentences, rows in words.parts:
            for word, vectors in occurrence_vectors(source, sentences, rows):
                if not table.size:
                    shape = *table.shape[:2], vectors.shape[1]
                    path.touch()
                    with named(path):  # a full disk is noticed before anything is written
                        reserve(path, int(np.prod(shape)) * table.itemsize)
                    table = np.memmap(path, dtype=np.float32, mode="r+", shape=shape)
                table[:, rows[word.name]] = vectors
        yield table


def _score(
    words: SenseWords,
    name: str,
    is_right: Bool[np.ndarray, "M W"],
    is_tie: Bool[np.ndarray, "M W"],
    *,
    prior_weight: float | None = None,
    uses_corpus: bool = True,
) -> WsdScore:
    """Score one or three methods: the test set by sentence, the corpus by document."""
    # without a candidate in other documents, the inventory's first sense is the answer
    is_known = words.has_candidates & uses_corpus
    is_answered = is_known | words.has_first
    counts = np.zeros((words.num_test + words.num_documents, 3 * len(FIGURES)))
    values: dict[str, float | None] = {figure.name: None for figure in FIGURES}
    num_ties: dict[str, int] = {}
    nums: dict[str, int] = {}
    parts = (("", words.is_test, FIGURES[:3]), ("semcor_", ~words.is_test, FIGURES[3:]))
    for part, is_part, figures in parts:
        for figure, right, tie in zip(figures, is_right, is_tie, strict=False):
            counts[:, figure.part] = np.stack([
                np.bincount(words.places, weights=counted & is_part, minlength=len(counts))
                for counted in (right & is_answered, is_answered, is_part)
            ], axis=1)  # fmt: skip
            values[figure.name] = float(f1_of(figure.counts(counts).sum(axis=0)))
            num_ties[figure.name] = int((tie & is_part).sum())
        nums[f"{part}num_instances"] = int(is_part.sum())
        nums[f"{part}num_backed_off"] = int((is_part & ~is_known & is_answered).sum())
        nums[f"{part}num_unanswered"] = int((is_part & ~is_answered).sum())
    return WsdScore(
        name=name, **values, **nums, prior_weight=prior_weight, num_ties=num_ties, counts=counts
    )


PROBE = Probe(
    read=lambda data, test, units: read_sense_data(data, test),
    words=lambda data: words_of(data.train, data.test),
    measure=lambda sources, data, seed: disambiguate(
        sources, data.train, data.test, data.inventory
    ),
    columns={
        "f1": "centroid", "nearest_f1": "1-NN", "prior_f1": "1-NN, prior",
        "semcor_f1": "SemCor: centroid", "semcor_nearest_f1": "SemCor: 1-NN",
        "semcor_prior_f1": "SemCor: 1-NN, prior",
    },
    note="F1 in percent. Test set: {num_instances:,} words; {num_backed_off:,} got the first sense "
    "because the corpus lacks their lemma, {num_unanswered:,} none. SemCor, each document by the "
    "others: {semcor_num_instances:,} words; {semcor_num_backed_off:,} got the first sense, "
    "{semcor_num_unanswered:,} none",
    counts="counts",
    figures=FIGURES,
    has_test_sets=True,
)  # fmt: skip
