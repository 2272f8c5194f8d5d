"""Nearest neighbors in context: which occurrences of a word have similar vectors.

Source: Peters et al. 2018, section 5.3 and table 4.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import tee
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal

import numpy as np

from elmokit.corpus.readers import read_sentences
from elmokit.errors import InputError
from elmokit.inference.layers_and_states import check_layers, check_one_layer
from elmokit.metrics.lexical_change import unit_rows
from elmokit.text.given_sentences import split_sentences
from elmokit.text.normalization import normalize
from elmokit.text.tokenizers.protocol import NormalizingTokenizer
from elmokit.text.tokenizers.registry import (
    build_tokenizer,
    tokenizer_for_model,
    tokenizer_metadata,
)
from elmokit.vectors.static_vectors import UNKNOWN_ID, StaticVectors
from elmokit.vectors.vector_files import VectorsReference, read_vectors

log = logging.getLogger(__name__)

Layers = Literal["top", "average"] | int

STATIC_NEIGHBORS = 10
_COSINES_TOGETHER = 1 << 22
_MIN_QUOTED_WORDS = 5


@dataclass(frozen=True)
class Occurrence:
    """One word in a sentence."""

    tokens: tuple[str, ...]
    index: int
    """Of the word in ``tokens``."""
    sense: str = ""
    num_tokens: int = 1
    """More than one if the tokenizer divides the word, as into morphemes."""

    @property
    def word(self) -> str:
        """The word as the tokenizer writes it, its parts between spaces."""
        return " ".join(self.tokens[self.index : self.end])

    @property
    def end(self) -> int:
        return self.index + self.num_tokens

    def vector(self, sentence: np.ndarray) -> np.ndarray:
        """Return the word's vector, the mean of its parts: (W, 2D) -> (2D,)."""
        return sentence[self.index : self.end].mean(axis=0)

    def marked(self, *, context: int | None = None) -> str:
        """Return the sentence with the word in brackets.

        ``context`` limits the words on each side; ``…`` marks omissions.
        """
        before, after = self.tokens[: self.index], self.tokens[self.end :]
        if context is not None and len(before) > context:
            before = ("…", *before[len(before) - context :])
        if context is not None and len(after) > context:
            after = (*after[:context], "…")
        return " ".join((*before, f"[{self.word}]", *after))


@dataclass(frozen=True)
class Neighborhood:
    """An occurrence and its neighbors, nearest first."""

    occurrence: Occurrence
    neighbors: tuple[Occurrence, ...]
    similarities: tuple[float, ...]
    """Cosines; in `neighborhoods` after the mean of all vectors is subtracted."""

    def as_dict(self) -> dict[str, Any]:
        """Return the places of the words for JSON."""
        word = self.occurrence
        return {
            "tokens": word.tokens, "index": word.index, "num_tokens": word.num_tokens,
            "neighbors": [
                {"tokens": other.tokens, "index": other.index, "similarity": similarity}
                for other, similarity in zip(self.neighbors, self.similarities, strict=True)
            ],
        }  # fmt: skip


def occurrence_in(tokens: Sequence[str], word: str | Sequence[str]) -> Occurrence:
    """Return the first occurrence of ``word``, or of its parts, in a sentence."""
    parts = _parts(word)
    index = _index_of(tuple(tokens), parts)
    if index is None:
        raise InputError(f"No word {' '.join(parts)!r} in the sentence {' '.join(tokens)!r}.")
    return Occurrence(tuple(tokens), index, num_tokens=len(parts))


def _parts(word: str | Sequence[str]) -> tuple[str, ...]:
    return (word,) if isinstance(word, str) else tuple(word)


def _index_of(tokens: tuple[str, ...], parts: tuple[str, ...]) -> int | None:
    last = len(tokens) - len(parts)
    return next((i for i in range(last + 1) if tokens[i : i + len(parts)] == parts), None)


def is_same_text(query: Sequence[str], sentence: Sequence[str]) -> bool:
    """Tell whether a sentence is or contains the query's, whatever their case and punctuation."""
    # a shorter query may be in another sentence by accident: only an equal one is the same text
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
    occurrences: dict[tuple[str, ...], Occurrence] = {}
    for tokens in map(tuple, split_sentences(sentences, None)):
        if parts[0] not in tokens or tokens in occurrences:
            continue
        index = _index_of(tokens, parts)
        if index is not None and not (query is not None and is_same_text(query, tokens)):
            occurrences[tokens] = Occurrence(tokens, index, num_tokens=len(parts))
        if len(occurrences) == limit:
            break
    return list(occurrences.values())


def find_neighbors(
    embedder: Any,
    sentences: Iterable[Sequence[str]],
    word: str | Sequence[str],
    *,
    query: Occurrence | None = None,
    layers: Layers = "top",
    num_neighbors: int = 5,
    limit: int = 1000,
) -> list[Neighborhood]:
    """Return the neighbors of a word's occurrences in a text, or only of the ``query``.

    ``embedder`` is an `elmokit.Embedder`. ``word`` may be the parts into which the tokenizer
    divides it. At most ``limit`` occurrences are compared; sentences that repeat the query's are
    taken out of the text.
    """
    check_one_layer(layers)
    if limit < (least := 2 if query is None else 1):
        raise InputError(f"`limit` must be at least {least} occurrences, got {limit}.")
    asked = None if query is None else query.tokens
    others = find_occurrences(sentences, word, limit=limit, query=asked)
    occurrences = others if query is None else [query, *others]
    if len(occurrences) < 2:
        which = "Only one distinct" if others else "No" if query is None else "No other"
        raise InputError(
            f"{which} sentence of the text contains {' '.join(_parts(word))!r}, as the tokenizer "
            "splits the word. Give more text or another word."
        )
    return neighborhoods(
        embedder, occurrences, of_first=None if query is None else 1, layers=layers,
        num_neighbors=num_neighbors,
    )  # fmt: skip


def neighborhoods(
    embedder: Any,
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
    stream = embedder.embed_stream([word.tokens for word in occurrences], layers=layers)
    vectors = np.stack([
        word.vector(sentence) for word, sentence in zip(occurrences, stream, strict=True)
    ])  # (O, 2D)  # fmt: skip
    # of two vectors, each is the other's opposite once their mean is gone
    if len(vectors) > 2:
        vectors = vectors - vectors.mean(axis=0)
    vectors = unit_rows(vectors)
    nearest_of_each: list[Neighborhood] = []
    queries, at_once = vectors[:of_first], max(1, _COSINES_TOGETHER // len(vectors))
    for start in range(0, len(queries), at_once):
        for row, cosines in enumerate(queries[start : start + at_once] @ vectors.T, start):
            cosines[row] = -np.inf
            # a stable sort: of equally near neighbors the first in the text is taken
            nearest = (-cosines).argsort(kind="stable")[: min(num_neighbors, len(vectors) - 1)]
            nearest_of_each.append(Neighborhood(
                occurrences[row], tuple(occurrences[k] for k in nearest.tolist()),
                tuple(cosines[nearest].tolist()),
            ))  # fmt: skip
    return nearest_of_each


def nearest_occurrences(
    embedder: Any, query: Occurrence, sentences: Iterable[list[str]], *, layers: Layers = "top",
    num_neighbors: int = 5,
) -> Neighborhood:  # fmt: skip
    """Return the nearest occurrences of any words, one a sentence, by cosine, in bounded memory."""
    direction = unit_rows(query.vector(next(embedder.embed_stream([query.tokens], layers=layers))))
    best: dict[Occurrence, float] = {}
    read, others = tee(part for part in sentences if part and not is_same_text(query.tokens, part))
    for tokens, vectors in zip(read, embedder.embed_stream(others, layers=layers), strict=True):
        cosines = unit_rows(vectors) @ direction
        best.setdefault(Occurrence(tuple(tokens), int(cosines.argmax())), float(cosines.max()))
        # a stable sort: of equally near words the first is kept
        best = dict(sorted(best.items(), key=itemgetter(1), reverse=True)[:num_neighbors])
    if num_neighbors and not best:
        raise InputError("The text has no sentence but that of the word.")
    return Neighborhood(query, tuple(best), tuple(best.values()))


def nearest_words(
    static: StaticVectors, word: str, *, num_neighbors: int = STATIC_NEIGHBORS
) -> list[tuple[str, float]]:
    """Return the words with the nearest static vectors, and their cosines; [] without its own."""
    own = static.id_of(word)
    if own == UNKNOWN_ID:
        return []
    vectors = unit_rows(static.values)
    cosines = vectors @ vectors[own]
    cosines[[0, 1, own]] = -np.inf  # padding, unknown, itself
    order = (-cosines).argsort(kind="stable")[: min(num_neighbors, len(static.words) - 1)]
    return [(static.words[k - 2], float(cosines[k])) for k in order.tolist()]


def spread(neighborhoods: Sequence[Neighborhood], count: int) -> list[Neighborhood]:
    """Return ``count`` of them, from that with the nearest neighbor to that with the farthest."""
    ranked = sorted(neighborhoods, key=lambda near: -near.similarities[0])
    places = np.linspace(0, len(ranked) - 1, min(count, len(ranked)))
    return [ranked[round(place)] for place in places.tolist()]


def share_of_same_sense(neighborhoods: Sequence[Neighborhood]) -> float:
    """Return the share of occurrences whose nearest neighbor has their sense."""
    hits = [near.neighbors[0].sense == near.occurrence.sense for near in neighborhoods]
    return sum(hits) / len(hits)


@dataclass(frozen=True, kw_only=True)
class WordNeighbors:
    """The neighbors of a word in a text, and those of its static vector."""

    word: str
    parts: list[str]
    layers: Layers
    occurrences: list[Neighborhood]
    """With a sentence: the one in it."""
    static: list[tuple[str, float]]
    metadata: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """Return all of it for JSON."""
        return vars(self) | {
            "occurrences": [near.as_dict() for near in self.occurrences],
            "static": [{"word": other, "similarity": cosine} for other, cosine in self.static],
        }


def neighbors_of_word(
    embedder: Any,
    text: Sequence[Path],
    word: str,
    *,
    sentence: str | None = None,
    any_word: bool = False,
    layers: Layers | str = "top",
    num_neighbors: int = 3,
    limit: int = 1000,
    vectors: Path | None = None,
    tokenizer: str | None = None,
    text_field: str | None = None,
) -> WordNeighbors:
    """Return which occurrences of a word in files of text have the most similar vectors.

    With ``sentence``, those of the word there, and with ``any_word`` also other words. At most
    ``limit`` sentences with the word are compared. ``vectors`` is a file of static vectors, to name
    the neighbors of the word there; ``tokenizer`` splits the text instead of the model's own.
    """
    check_one_layer(layers)
    layer: Any = check_layers(layers, embedder.num_layers)
    form = embedder.normalization
    of_text = build_tokenizer(tokenizer_for_model(embedder.tokenizer_config, tokenizer))
    splitter = NormalizingTokenizer(of_text, form)
    word = normalize(word, form)
    parts = splitter.tokenize(word)
    if not parts:
        raise InputError(f"`word` must have letters, got {word!r}.")
    if parts != [word]:
        log.info(
            "the tokenizer %s writes %r as %d tokens: %r",
            splitter.name, word, len(parts), " ".join(parts),
        )  # fmt: skip
    query = None if sentence is None else occurrence_in(splitter.tokenize(sentence), parts)
    metadata = embedder.metadata(layers=layer) | {"tokenizer": tokenizer_metadata(splitter)}
    static = []
    if vectors is not None:
        static = _static_neighbors(vectors, word)
        metadata["vectors_sha256"] = VectorsReference.of(vectors).sha256
    sentences = read_sentences(text, of_text, normalization=form, text_field=text_field)
    how: dict[str, Any] = {"layers": layer, "num_neighbors": num_neighbors}
    if query is not None and any_word:
        occurrences = [nearest_occurrences(embedder, query, sentences, **how)]
    else:
        occurrences = find_neighbors(embedder, sentences, parts, query=query, limit=limit, **how)
    return WordNeighbors(
        word=word, parts=parts, layers=layer, occurrences=occurrences, static=static,
        metadata=metadata,
    )  # fmt: skip


def _static_neighbors(vectors: Path, word: str) -> list[tuple[str, float]]:
    static = read_vectors(vectors)
    if static.id_of(word) == UNKNOWN_ID:  # fastText makes one of n-grams
        static = static.extended(read_vectors(vectors, only=[word]))
    if static.id_of(word) == UNKNOWN_ID:
        log.warning("%s has no vector for %r: no static neighbors", vectors, word)
    return nearest_words(static, word)
