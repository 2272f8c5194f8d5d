"""The neighbors of a word in a text: of its occurrences, and of its static vector."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmokit.corpus.readers import read_sentences
from elmokit.embed.embedder import Embedder
from elmokit.errors import InputError
from elmokit.inference.results import check_layers, check_one_layer
from elmokit.probes.neighbors import (
    Layers,
    Neighborhood,
    find_neighbors,
    nearest_occurrences,
    nearest_words,
    occurrence_in,
)
from elmokit.text.normalization import normalize
from elmokit.text.tokenizers.protocol import NormalizingTokenizer, Tokenizer
from elmokit.text.tokenizers.registry import (
    build_tokenizer,
    tokenizer_for_model,
    tokenizer_metadata,
)
from elmokit.vectors.static_vectors import UNKNOWN_ID
from elmokit.vectors.vector_files import VectorsReference, read_vectors

log = logging.getLogger(__name__)

STATIC_NEIGHBORS = 10


@dataclass(frozen=True, kw_only=True)
class WordNeighbors:
    """What was found of a word."""

    word: str
    """As the model reads it."""
    parts: list[str]
    """More than one if the tokenizer divides the word."""
    layers: Layers
    occurrences: list[Neighborhood]
    """With a sentence: the one in it."""
    static: list[tuple[str, float]]
    """The nearest static vectors with their cosines, if there are any."""
    metadata: dict[str, Any]
    """Of the vectors, as `Embedder.metadata` has it."""

    def as_dict(self) -> dict[str, Any]:
        """Return all of it for JSON."""
        return {
            "word": self.word,
            "parts": self.parts,
            "layers": self.layers,
            "occurrences": [_as_dict(one) for one in self.occurrences],
            "static": [{"word": other, "similarity": cosine} for other, cosine in self.static],
            "metadata": self.metadata,
        }


def neighbors_of_word(
    embedder: Embedder,
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
) -> WordNeighbors:
    """Return which occurrences of a word in a text have the most similar vectors.

    Args:
        embedder: Embeds the text.
        text: Files or directories of raw text.
        word: If the tokenizer divides it, all its parts are looked for, side by side.
        sentence: Find only the neighbors of the word in this sentence, which need not be in the
            text.
        any_word: With ``sentence``: other words may be neighbors.
        layers: One vector per word.
        num_neighbors: Of each occurrence.
        limit: Compare at most this many sentences with the word.
        vectors: File of static vectors, to name the neighbors of the word there.
        tokenizer: Splits the text instead of the model's own, with a warning if it differs.
    """
    if sentence is None and any_word:
        raise InputError("`any_word` needs `sentence`: the occurrence whose neighbors to find.")
    check_one_layer(layers)
    layer: Any = check_layers(layers, embedder.num_layers)
    form = embedder.normalization
    of_text = build_tokenizer(tokenizer_for_model(embedder.tokenizer_config, tokenizer))
    splitter = NormalizingTokenizer(of_text, form)
    word = normalize(word, form)
    parts = _parts(word, splitter)
    query = None
    if sentence is not None:
        query = occurrence_in(splitter.tokenize(sentence), parts)
    static = [] if vectors is None else _static_neighbors(vectors, word)
    sentences = read_sentences(text, of_text, normalization=form)
    how: dict[str, Any] = {"layers": layer, "num_neighbors": num_neighbors}
    if query is not None and any_word:
        occurrences = [nearest_occurrences(embedder, query, sentences, **how)]
    else:
        occurrences = find_neighbors(embedder, sentences, parts, query=query, limit=limit, **how)
    metadata = embedder.metadata(layers=layer) | {"tokenizer": tokenizer_metadata(splitter)}
    if vectors is not None:
        metadata["vectors_sha256"] = VectorsReference.of(vectors).sha256
    return WordNeighbors(
        word=word,
        parts=parts,
        layers=layer,
        occurrences=occurrences,
        static=static,
        metadata=metadata,
    )


def _parts(word: str, tokenizer: Tokenizer) -> list[str]:
    parts = tokenizer.tokenize(word)
    if not parts:
        raise InputError(f"`word` must have letters, got {word!r}.")
    if parts != [word]:
        log.info(
            "the tokenizer %s writes %r as %d tokens: %r",
            tokenizer.name, word, len(parts), " ".join(parts),
        )  # fmt: skip
    return parts


def _static_neighbors(vectors: Path, word: str) -> list[tuple[str, float]]:
    read = read_vectors(vectors)
    if read.id_of(word) == UNKNOWN_ID:  # fastText makes one of n-grams
        read = read.extended(read_vectors(vectors, only=[word]))
    if read.id_of(word) == UNKNOWN_ID:
        log.warning("%s has no vector for %r: no static neighbors", vectors, word)
        return []
    return nearest_words(read, word, num_neighbors=STATIC_NEIGHBORS)


def _as_dict(neighborhood: Neighborhood) -> dict[str, Any]:
    own = neighborhood.occurrence
    pairs = zip(neighborhood.neighbors, neighborhood.similarities, strict=True)
    return {
        "tokens": own.tokens, "index": own.index, "num_tokens": own.num_tokens,
        "neighbors": [
            {"tokens": other.tokens, "index": other.index, "similarity": similarity}
            for other, similarity in pairs
        ],
    }  # fmt: skip
