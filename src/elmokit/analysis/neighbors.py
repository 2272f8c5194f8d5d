"""Nearest neighbors in context: which occurrences of a word a model takes to be alike.

Source: Peters et al. 2018, section 5.3 and table 4.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import numpy as np

Layers = Literal["top", "average"] | int


@runtime_checkable
class SentenceEmbedder(Protocol):
    """What neighbors need of `elmokit.Embedder`."""

    def embed(self, sentences: Sequence[Sequence[str]], *, layers: Layers) -> list[np.ndarray]:
        """Return one array (W, 2D) per sentence."""
        ...


@dataclass(frozen=True)
class Occurrence:
    """One word in a sentence."""

    tokens: tuple[str, ...]
    index: int
    """Position of the word in ``tokens``."""
    sense: str = ""
    """What it means there, where that is known."""

    @property
    def word(self) -> str:
        """The word itself."""
        return self.tokens[self.index]

    def marked(self, *, context: int | None = None) -> str:
        """Return the sentence with the word in brackets.

        Args:
            context: Words shown on each side; none: the whole sentence.
        """
        first = 0 if context is None else max(0, self.index - context)
        last = len(self.tokens) if context is None else self.index + context + 1
        before, after = self.tokens[first : self.index], self.tokens[self.index + 1 : last]
        return " ".join((*before, f"[{self.word}]", *after))


@dataclass(frozen=True)
class Neighborhood:
    """An occurrence and those nearest to it, nearest first."""

    occurrence: Occurrence
    neighbors: tuple[Occurrence, ...]
    similarities: tuple[float, ...]
    """Cosine, of the vectors less the mean of all given occurrences."""


def find_occurrences(
    sentences: Iterable[Sequence[str]], word: str, *, limit: int = 200
) -> list[Occurrence]:
    """Return the first occurrences of ``word``, one a sentence."""
    found: list[Occurrence] = []
    for sentence in sentences:
        if word in sentence:
            found.append(Occurrence(tuple(sentence), list(sentence).index(word)))
            if len(found) == limit:
                break
    return found


def neighborhoods(
    embedder: SentenceEmbedder,
    occurrences: Sequence[Occurrence],
    *,
    layers: Layers = "top",
    num_neighbors: int = 5,
) -> list[Neighborhood]:
    """Return the nearest neighbors of every occurrence among the others.

    The mean of all vectors is taken off first: what the occurrences share says nothing of how they
    differ.

    Args:
        embedder: The model.
        occurrences: Usually of one word.
        layers: Which vectors are compared.
        num_neighbors: For each occurrence; fewer if there are not so many.

    Raises:
        ValueError: if there are fewer than two occurrences.
    """
    if len(occurrences) < 2:
        raise ValueError(f"Neighbors need at least two occurrences, got {len(occurrences)}.")
    sentences = embedder.embed([o.tokens for o in occurrences], layers=layers)
    vectors = np.stack([x[o.index] for x, o in zip(sentences, occurrences, strict=True)])  # (O, 2D)
    vectors = vectors - vectors.mean(axis=0)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True).clip(1e-9)
    similarity = vectors @ vectors.T  # (O, O)
    np.fill_diagonal(similarity, -np.inf)
    order = (-similarity).argsort(axis=1, kind="stable")[:, : min(num_neighbors, len(vectors) - 1)]
    return [
        Neighborhood(
            occurrence,
            tuple(occurrences[k] for k in nearest),
            tuple(float(similarity[row, k]) for k in nearest),
        )
        for row, (occurrence, nearest) in enumerate(zip(occurrences, order.tolist(), strict=True))
    ]


def share_of_same_sense(found: Sequence[Neighborhood], *, among: int = 1) -> float:
    """Return the share of the ``among`` nearest neighbors that have the occurrence's sense."""
    hits = [other.sense == one.occurrence.sense for one in found for other in one.neighbors[:among]]
    return sum(hits) / len(hits)
