"""Annotated words and their vectors, for the probes of word senses."""

from collections.abc import Collection, Iterable, Iterator

import numpy as np
from jaxtyping import Float

from elmokit.probes.vector_sources import VectorSource
from elmokit.tasks.formats.senses import SenseOccurrence, SenseSentence


def lemma_of(occurrence: SenseOccurrence) -> str:
    """Return the lemma in lower case, with spaces between the words of an expression."""
    return occurrence.lemma.replace("_", " ").lower()


def occurrence_vectors(
    source: VectorSource, sentences: Iterable[SenseSentence], wanted: Collection[str]
) -> Iterator[tuple[SenseOccurrence, Float[np.ndarray, "S X"]]]:
    """Yield annotated words and their vectors, one per name of the source.

    Only occurrences with a ``wanted`` name; sentences without one are not embedded. The vector of
    an expression is the mean of its words.
    """
    found = [one for one in sentences if any(word.name in wanted for word in one.occurrences)]
    stream = source.stream([sentence.tokens for sentence in found])
    for sentence, vectors in zip(found, stream, strict=True):
        for occurrence in sentence.occurrences:
            if occurrence.name in wanted:
                yield occurrence, vectors[:, occurrence.start : occurrence.end].mean(axis=1)
