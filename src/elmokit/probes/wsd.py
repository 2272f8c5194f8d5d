"""Word senses by vectors of an annotated corpus: how much meaning in context a layer captures.

A word gets one of the senses that the corpus has for its lemma and part of speech, by one of three
methods: the nearest centroid, which is the mean vector of a sense; the nearest annotated word
(1-NN); or 1-NN with the prior, where the score of a sense is

    cosine of its nearest word + w ln p(sense),

p its share among the lemma's annotations (for w see `sense_answers`). Lemmas that the corpus lacks
get the inventory's first sense. Words of a test set are compared with the whole corpus, and those
of the corpus, SemCor, with all of its documents but their own.

Source: Peters et al. 2018, section 5.3 and table 5 (centroids); candidates as in Raganato et al.
2017.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from elmokit.metrics.span_f1 import f1_of
from elmokit.probes.data import find_sense_files, read_sense_data
from elmokit.probes.probe import Figure, Probe, words_of
from elmokit.probes.sense_answers import (
    Answers,
    answers_by_vectors,
    first_senses,
    most_frequent_senses,
)
from elmokit.probes.sense_words import SenseWords
from elmokit.probes.vector_sources import VectorSource, check_names
from elmokit.tasks.formats.senses import SenseInventory, SenseSentence

FIRST_SENSE, MOST_FREQUENT = "first sense", "most frequent sense"
"""Baselines: the inventory's first sense, and the most frequent one of the (other) documents."""
FIGURES = tuple(
    Figure(name, f1_of, slice(3 * number, 3 * number + 3))
    for number, name in enumerate((
        "f1", "nearest_f1", "prior_f1", "semcor_f1", "semcor_nearest_f1", "semcor_prior_f1",
    ))
)  # fmt: skip
"""By centroid, 1-NN and 1-NN with the prior: on the test set, then on the corpus."""


@dataclass(frozen=True, kw_only=True)
class WsdScore:
    """Share of annotated words that get one of their gold senses, in percent.

    Baselines have one answer, and None by 1-NN.
    """

    name: str
    """Of the representation."""
    f1: float | None
    """Of the nearest centroid on the test set; equals the accuracy if every word is answered."""
    nearest_f1: float | None
    """Of 1-NN."""
    prior_f1: float | None
    """Of 1-NN with the prior."""
    semcor_f1: float | None
    """Of the nearest centroid on the corpus, one document left out at a time."""
    semcor_nearest_f1: float | None
    semcor_prior_f1: float | None
    prior_weight: float | None
    """w on the test set."""
    num_ties: Mapping[str, int]
    """By figure: words of which several senses were equally good."""
    num_instances: int
    """Words of the test set."""
    num_backed_off: int
    """Answered with the inventory's first sense, because the corpus lacks the lemma."""
    num_unanswered: int
    """Neither the corpus nor the inventory has the lemma."""
    semcor_num_instances: int
    semcor_num_backed_off: int
    """Because no other document has the lemma."""
    semcor_num_unanswered: int
    counts: NDArray[np.float64] = field(repr=False, compare=False)
    """A row per sentence of the test set, then one per document of the corpus. Three columns for
    each of `FIGURES`: correct, answered, all."""


def disambiguate(
    sources: Sequence[VectorSource],
    corpus: Sequence[SenseSentence],
    test: Sequence[SenseSentence],
    inventory: SenseInventory,
) -> tuple[WsdScore, ...]:
    """Disambiguate the words of ``test``, and those of ``corpus`` with their document left out.

    A word with several senses is an example of each; any gold sense is correct; ties go to the
    sense that the inventory lists first. The vectors of one source at a time are in a temporary
    file (`vector_table`).

    Returns:
        `FIRST_SENSE` and `MOST_FREQUENT`, then a score per name, in the order of the sources.

    Raises:
        InputError: if two representations have the same name, or there is none.
        OSError: if the disk has no room for the vectors.
    """
    check_names(sources)
    words = SenseWords(corpus, test, inventory)
    answers = [first_senses(FIRST_SENSE, words), most_frequent_senses(MOST_FREQUENT, words)]
    for source in sources:
        answers += answers_by_vectors(source, words)
    return tuple(_score(words, one) for one in answers)


def _score(words: SenseWords, answers: Answers) -> WsdScore:
    """Score each method on both parts: the test set by sentence, the corpus by document."""
    num_test = len(words.test)
    rows = np.where(words.is_test, words.units, num_test + words.units)
    is_known = words.has_candidates & answers.uses_corpus
    is_answered = is_known | words.has_first
    counts = np.zeros((num_test + words.num_documents, 3 * len(FIGURES)))
    values: dict[str, float | None] = {figure.name: None for figure in FIGURES}
    num_ties: dict[str, int] = {}
    for is_part, figures in ((words.is_test, FIGURES[:3]), (~words.is_test, FIGURES[3:])):
        methods = zip(figures, answers.is_right, answers.is_tie, strict=False)  # a baseline has one
        for figure, is_right, is_tie in methods:
            columns = [
                np.bincount(rows, weights=chosen & is_part, minlength=len(counts))
                for chosen in (is_right & is_answered, is_answered, is_part)
            ]
            counts[:, figure.part] = np.stack(columns, axis=1)
            values[figure.name] = float(f1_of(figure.counts(counts).sum(axis=0)))
            num_ties[figure.name] = int((is_tie & is_part).sum())
    of_test, of_corpus = (
        [int((part & chosen).sum()) for chosen in (True, ~is_known & is_answered, ~is_answered)]
        for part in (words.is_test, ~words.is_test)
    )
    return WsdScore(
        name=answers.name, **values, prior_weight=answers.prior_weight, num_ties=num_ties,
        num_instances=of_test[0], num_backed_off=of_test[1], num_unanswered=of_test[2],
        semcor_num_instances=of_corpus[0], semcor_num_backed_off=of_corpus[1],
        semcor_num_unanswered=of_corpus[2], counts=counts,
    )  # fmt: skip


PROBE = Probe(
    find=find_sense_files,
    read=lambda files, tokenize, units: read_sense_data(files),
    words=lambda data: words_of(data.train, data.test),
    measure=lambda sources, data, seed, device: disambiguate(
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
    is_tokenized=True,
)  # fmt: skip
