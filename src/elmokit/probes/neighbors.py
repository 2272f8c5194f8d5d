"""Nearest neighbors in context: which occurrences of a word have similar vectors.

Source: Peters et al. 2018, section 5.3 and table 4.
"""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal, Protocol, TypeVar, runtime_checkable

import numpy as np
from jaxtyping import Float

from elmokit.errors import InputError
from elmokit.inference.results import check_one_layer
from elmokit.text.given_sentences import split_sentences
from elmokit.vectors.static_vectors import UNKNOWN_ID, StaticVectors

Layers = Literal["top", "average"] | int
Item = TypeVar("Item")

_SENTENCES_TOGETHER = 1024
_COSINES_TOGETHER = 1 << 22
"""Between occurrences, held at once."""


@runtime_checkable
class SentenceEmbedder(Protocol):
    """The part of `elmokit.Embedder` that neighbors need."""

    def embed(self, sentences: Sequence[Sequence[str]], *, layers: Layers) -> list[np.ndarray]:
        """Return one array (W, 2D) per sentence."""
        ...


@dataclass(frozen=True)
class Occurrence:
    """One word in a sentence."""

    tokens: tuple[str, ...]
    index: int
    """Of the word in ``tokens``."""
    sense: str = ""
    """Its meaning there, if known."""
    num_tokens: int = 1
    """More than one if the tokenizer divides the word, as into morphemes."""

    @property
    def word(self) -> str:
        """The word as the tokenizer writes it, its parts between spaces."""
        return " ".join(self.tokens[self.index : self.end])

    @property
    def end(self) -> int:
        """Index after the word."""
        return self.index + self.num_tokens

    def vector(self, sentence: np.ndarray) -> np.ndarray:
        """Return the word's vector, the mean of its parts: (W, 2D) -> (2D,)."""
        return sentence[self.index : self.end].mean(axis=0)

    def marked(self, *, context: int | None = None) -> str:
        """Return the sentence with the word in brackets.

        ``context`` limits the words on each side; ``…`` marks omissions.
        """
        first, last = 0, len(self.tokens)
        if context is not None:
            first, last = max(0, self.index - context), min(last, self.end + context)
        before, after = self.tokens[first : self.index], self.tokens[self.end : last]
        shown = " ".join((*before, f"[{self.word}]", *after))
        return f"{'… ' if first else ''}{shown}{' …' if last < len(self.tokens) else ''}"


@dataclass(frozen=True)
class Neighborhood:
    """An occurrence and its neighbors, nearest first."""

    occurrence: Occurrence
    neighbors: tuple[Occurrence, ...]
    similarities: tuple[float, ...]
    """Cosines; in `neighborhoods` after the mean of all vectors is subtracted."""


def occurrence_in(tokens: Sequence[str], word: str | Sequence[str]) -> Occurrence:
    """Return the first occurrence of ``word``, or of its parts, in a sentence."""
    parts = _parts(word)
    index = _index_of(tuple(tokens), parts)
    if index is None:
        raise InputError(
            f"The sentence has no word {' '.join(parts)!r}. The tokenizer splits it into "
            f"{' '.join(tokens)!r}."
        )
    return Occurrence(tuple(tokens), index, num_tokens=len(parts))


def _parts(word: str | Sequence[str]) -> tuple[str, ...]:
    return (word,) if isinstance(word, str) else tuple(word)


def _index_of(tokens: tuple[str, ...], parts: tuple[str, ...]) -> int | None:
    """Return where the parts first stand side by side."""
    last = len(tokens) - len(parts)
    return next((i for i in range(last + 1) if tokens[i : i + len(parts)] == parts), None)


_MIN_QUOTED_WORDS = 5


def is_same_text(query: Sequence[str], sentence: Sequence[str]) -> bool:
    """Tell whether a sentence is or contains the query's, whatever their case and punctuation.

    A query of fewer than five words may be in another sentence by accident: only an equal one is
    the same text then.
    """
    wanted, words = (
        tuple(t.casefold() for t in tokens if any(map(str.isalnum, t)))
        for tokens in (query, sentence)
    )
    if wanted == words:
        return bool(wanted) or tuple(query) == tuple(sentence)
    return len(wanted) >= _MIN_QUOTED_WORDS and _index_of(words, wanted) is not None


def find_occurrences(
    sentences: Iterable[Sequence[str]],
    word: str | Sequence[str],
    *,
    limit: int = 200,
    query: Sequence[str] | None = None,
) -> list[Occurrence]:
    """Return the first occurrences of ``word`` or of its parts, one per distinct sentence.

    Sentences are lists of words; those that repeat the sentence ``query`` are left out.
    """
    parts = _parts(word)
    if not parts:
        raise InputError("`word` must have at least one part, got none.")
    occurrences: dict[tuple[str, ...], Occurrence] = {}
    for tokens in map(tuple, split_sentences(sentences, None)):
        if parts[0] in tokens and tokens not in occurrences:
            index = _index_of(tokens, parts)
            if index is None or (query is not None and is_same_text(query, tokens)):
                continue
            occurrences[tokens] = Occurrence(tokens, index, num_tokens=len(parts))
            if len(occurrences) == limit:
                break
    return list(occurrences.values())


def find_neighbors(
    embedder: SentenceEmbedder,
    sentences: Iterable[Sequence[str]],
    word: str | Sequence[str],
    *,
    query: Occurrence | None = None,
    layers: Layers = "top",
    num_neighbors: int = 5,
    limit: int = 1000,
) -> list[Neighborhood]:
    """Return the neighbors of a word's occurrences in a text, or only of the ``query``.

    ``word`` may be the parts into which the tokenizer divides it. At most ``limit`` occurrences are
    compared; sentences that repeat the query's are taken out of the text.
    """
    check_one_layer(layers)
    least = 2 if query is None else 1
    if limit < least:
        raise InputError(
            f"`limit` must be at least {least}: occurrences are compared, got {limit}."
        )
    asked = None if query is None else query.tokens
    others = find_occurrences(sentences, word, limit=limit, query=asked)
    occurrences = others if query is None else [query, *others]
    if len(occurrences) < 2:
        which = "Only one distinct" if others else "No" if query is None else "No other"
        raise InputError(
            f"{which} sentence of the text contains {' '.join(_parts(word))!r}, as the "
            "tokenizer splits the word, which `elmokit tokenize` shows. Give more text or another "
            "word."
        )
    return neighborhoods(
        embedder, occurrences, of_first=None if query is None else 1, layers=layers,
        num_neighbors=num_neighbors,
    )  # fmt: skip


def neighborhoods(
    embedder: SentenceEmbedder,
    occurrences: Sequence[Occurrence],
    *,
    of_first: int | None = None,
    layers: Layers = "top",
    num_neighbors: int = 5,
) -> list[Neighborhood]:
    """Return the nearest neighbors of every occurrence, or of the first ones, among all others.

    The mean of all vectors, usually of one word, is subtracted first: what the occurrences share
    does not distinguish them. Not of two, whose cosine would be -1 whatever they are.
    """
    _check_count(num_neighbors)
    vectors = np.stack([
        one.vector(sentence)
        for block in batched(occurrences, _SENTENCES_TOGETHER)
        for one, sentence in zip(block, _embed(embedder, block, layers), strict=True)
    ])  # (O, 2D)  # fmt: skip
    if len(vectors) > 2:
        vectors = vectors - vectors.mean(axis=0)
    vectors = unit_rows(vectors)
    count = min(num_neighbors, len(vectors) - 1)
    nearest_of_each: list[Neighborhood] = []
    for rows in batched(range(len(vectors))[:of_first], max(1, _COSINES_TOGETHER // len(vectors))):
        similarity = vectors[rows] @ vectors.T  # (R, O)
        similarity[range(len(rows)), rows] = -np.inf
        order = (-similarity).argsort(axis=1, kind="stable")[:, :count]
        nearest_of_each += [
            Neighborhood(
                occurrences[row],
                tuple(occurrences[k] for k in nearest),
                tuple(float(own[k]) for k in nearest),
            )
            for row, own, nearest in zip(rows, similarity, order.tolist(), strict=True)
        ]
    return nearest_of_each


def nearest_occurrences(
    embedder: SentenceEmbedder,
    query: Occurrence,
    sentences: Iterable[Sequence[str]],
    *,
    layers: Layers = "top",
    num_neighbors: int = 5,
) -> Neighborhood:
    """Return the occurrences of any words nearest to the query, by cosine, in bounded memory.

    Each sentence contributes its nearest word. Repeated sentences are skipped, and those that are
    or contain the query's, whatever their case and punctuation.
    """
    _check_count(num_neighbors)
    (own,) = _embed(embedder, [query], layers)
    direction = unit_rows(query.vector(own))
    best: list[tuple[float, int, Occurrence]] = []
    number = 0
    for block in batched((s for s in split_sentences(sentences, None) if s), _SENTENCES_TOGETHER):
        starts = [Occurrence(tuple(sentence), 0) for sentence in block]
        for start, vectors in zip(starts, _embed(embedder, starts, layers), strict=True):
            cosines = unit_rows(vectors) @ direction
            index, number = int(cosines.argmax()), number - 1  # ties: the first is kept
            entry = (float(cosines[index]), number, Occurrence(start.tokens, index))
            if len(best) == num_neighbors and entry < best[0]:
                continue
            is_repeated = any(entry[2] == occurrence for _, _, occurrence in best)
            if is_repeated or is_same_text(query.tokens, start.tokens):
                continue
            heapq.heappush(best, entry)
            if len(best) > num_neighbors:
                heapq.heappop(best)
    best.sort(key=lambda entry: entry[:2], reverse=True)
    return Neighborhood(query, tuple(o for _, _, o in best), tuple(cosine for cosine, _, _ in best))


def nearest_words(
    static: StaticVectors, word: str, *, num_neighbors: int = 10
) -> list[tuple[str, float]]:
    """Return the words with the nearest static vectors, and their cosines."""
    own = static.id_of(word)
    if own == UNKNOWN_ID:
        raise InputError(f"The static vectors have no vector for {word!r}.")
    vectors = unit_rows(static.values)
    cosines = vectors @ vectors[own]
    cosines[[0, 1, own]] = -np.inf  # padding, unknown, itself
    order = (-cosines).argsort(kind="stable")[: min(num_neighbors, len(static.words) - 1)]
    return [(static.words[k - 2], float(cosines[k])) for k in order.tolist()]


def spread(neighborhoods: Sequence[Neighborhood], count: int) -> list[Neighborhood]:
    """Return ``count`` of them, from that with the nearest neighbor to that with the farthest."""
    ranked = sorted(neighborhoods, key=lambda one: -one.similarities[0])
    places = np.linspace(0, len(ranked) - 1, min(count, len(ranked)))
    return [ranked[round(place)] for place in places.tolist()]


def share_of_same_sense(neighborhoods: Sequence[Neighborhood], *, among: int = 1) -> float:
    """Return the share of the ``among`` nearest neighbors with the occurrence's sense."""
    hits = [
        neighbor.sense == one.occurrence.sense
        for one in neighborhoods
        for neighbor in one.neighbors[:among]
    ]
    return sum(hits) / len(hits)


def unit_rows(x: Float[np.ndarray, "*A X"]) -> Float[np.ndarray, "*A X"]:
    """Return rows of length 1; zero rows stay zero."""
    return x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1e-12)


def batched(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Yield lists of ``size`` items; the last may be shorter."""
    remaining = iter(items)
    while batch := list(islice(remaining, size)):
        yield batch


def _check_count(num_neighbors: int) -> None:
    if num_neighbors < 1:
        raise InputError(f"`num_neighbors` must be at least 1, got {num_neighbors}.")


def _embed(
    embedder: SentenceEmbedder, occurrences: Sequence[Occurrence], layers: Layers
) -> list[np.ndarray]:
    return embedder.embed([one.tokens for one in occurrences], layers=layers)
