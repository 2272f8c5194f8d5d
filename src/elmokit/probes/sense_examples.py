"""Occurrences of a word in different senses and the occurrences nearest to them, as in table 4.

Source: Peters et al. 2018, section 5.3 and table 4.
"""

from collections import Counter
from collections.abc import Sequence

from elmokit.errors import InputError
from elmokit.probes.neighbors import (
    Neighborhood,
    Occurrence,
    SentenceEmbedder,
    is_same_text,
    neighborhoods,
)
from elmokit.probes.occurrences import lemma_of
from elmokit.tasks.formats.senses import SenseSentence

READABLE_WORDS = range(8, 31)
"""Lengths of sentences that are preferred as queries."""


def occurrences_in_senses(
    sentences: Sequence[SenseSentence], lemma: str, *, pos: str | None = None
) -> list[Occurrence]:
    """Return the annotated occurrences of a lemma of one word, with their sense keys.

    One per distinct sentence, of any part of speech or one; several keys of an occurrence are
    joined by spaces.
    """
    found: dict[tuple[str, ...], Occurrence] = {}
    for sentence in sentences:
        for word in sentence.occurrences:
            is_wanted = lemma_of(word) == lemma and pos in (None, word.pos)
            if is_wanted and word.end == word.start + 1:
                one = Occurrence(sentence.tokens, word.start, sense=" ".join(word.sense_keys))
                found.setdefault(sentence.tokens, one)
    return list(found.values())


def queries_of(occurrences: Sequence[Occurrence], word: str) -> tuple[Occurrence, Occurrence]:
    """Return an occurrence of ``word`` in each of two senses that are far apart.

    They are the most frequent senses of the two most frequent supersenses. Of a sense, the first
    occurrence in a readable sentence is taken.

    Raises:
        InputError: if the occurrences have fewer than two supersenses.
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
    (found,) = neighborhoods(embedder, [query, *others], of_first=1, num_neighbors=num_neighbors)
    return found
