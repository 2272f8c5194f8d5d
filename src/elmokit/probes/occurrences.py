"""Annotated words and their vectors: what the probes of word senses share."""

from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from typing import TypeVar

import numpy as np
from jaxtyping import Float

from elmokit.probes.vector_sources import VectorSource
from elmokit.tasks.formats.senses import SenseOccurrence, SenseSentence

Item = TypeVar("Item")


def lemma_of(occurrence: SenseOccurrence) -> str:
    """Return the lemma without regard to case, expressions with spaces."""
    return occurrence.lemma.replace("_", " ").lower()


def occurrence_vectors(
    source: VectorSource, sentences: Iterable[SenseSentence], wanted: Collection[str]
) -> Iterator[tuple[SenseOccurrence, Float[np.ndarray, "S X"]]]:
    """Yield the annotated words that are wanted, each with its vector in all ways of the source.

    Expressions of several words have the mean of their words' vectors. Sentences without a wanted
    word are not read at all.

    Args:
        source: The vectors.
        sentences: With annotated words.
        wanted: Names of occurrences.
    """
    found = [one for one in sentences if any(word.name in wanted for word in one.occurrences)]
    stream = source.stream([sentence.tokens for sentence in found])
    for sentence, vectors in zip(found, stream, strict=True):
        for occurrence in sentence.occurrences:
            if occurrence.name in wanted:
                yield occurrence, vectors[:, occurrence.start : occurrence.end].mean(axis=1)


def unit_rows(x: Float[np.ndarray, "*A X"]) -> Float[np.ndarray, "*A X"]:
    """Return rows of length 1; rows of zeros stay, and are like nothing."""
    return x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1e-12)


def blocks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Yield lists of ``size`` items; the last may be shorter."""
    remaining = iter(items)
    while block := list(islice(remaining, size)):
        yield block
