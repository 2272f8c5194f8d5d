"""Vectors of whole sentences, and of spans of a text that is embedded as a whole."""

import os
from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from elmokit.embed.pooling import Pooling
from elmokit.embed.streaming import DEFAULT_BATCH_TOKENS, StatePolicy
from elmokit.errors import InputError
from elmokit.inference.results import Layers
from elmokit.text.alignment import align, covering_words
from elmokit.text.given_sentences import GivenSentence, split_sentence, split_sentences

if TYPE_CHECKING:
    from elmokit.embed.embedder import Embedder


def embed_sentences(
    embedder: "Embedder",
    sentences: Iterable[GivenSentence],
    *,
    pooling: str | None = None,
    layers: Layers | str | None = None,
    state: StatePolicy | str = "reset",
    batch_tokens: int = DEFAULT_BATCH_TOKENS,
    statistics: str | os.PathLike[str] | None = None,
) -> np.ndarray:
    """Return one vector per sentence: float32 (N, 2D), with all layers (N, L, 2D).

    The vector of an empty sentence is zeros.

    Args:
        embedder: The model.
        sentences: As in `embed`.
        pooling: ``"sif"`` tells best how similar sentences are: rare words count more, and vectors
            are whitened (`elmokit.embed.sif`). ``"mean"`` and ``"max"`` are over the plain vectors
            of the words. Default: SIF, or the mean for a model without vocabulary.
        layers: As in `embed`; default: 0 with SIF, for which context layers are worse; else
            ``"average"``, which TF-Hub's ELMo pooled.
        state: As in `embed`.
        batch_tokens: As in `embed`.
        statistics: For SIF: a file of `elmokit distil` (.safetensors) whose word frequencies and
            components are used; default: those of the model's vocabulary.

    Raises:
        InputError: for an unknown pooling, and with SIF for a model without vocabulary if there
            are no ``statistics``.
    """
    pool = Pooling(embedder, pooling, layers=layers, statistics=statistics)
    pending: deque[list[str]] = deque()

    def words() -> Iterator[list[str]]:
        for sentence in split_sentences(sentences, embedder.tokenizer.tokenize):
            pending.append(sentence)
            yield sentence

    stream = embedder.stream_with_states(
        words(), layers=pool.layers, state=state, batch_tokens=batch_tokens
    )
    rows = [pool(vectors, pending.popleft()) for vectors, _ in stream]
    leading = [embedder.num_layers] if pool.layers == "all" else []
    return np.array(rows, dtype=np.float32).reshape(-1, *leading, embedder.dim)


def embed_spans(
    embedder: "Embedder",
    text: GivenSentence,
    spans: Iterable[tuple[int, int]],
    *,
    pooling: str = "mean",
    layers: Layers | str | None = None,
    state: StatePolicy | str = "reset",
) -> np.ndarray:
    """Return one vector per span of a text, pooled over its words; each has read the whole text.

    Args:
        embedder: The model.
        text: A string of any length, or its words, read once, as one sentence.
        spans: ``[start, end)`` of each: characters of the string, or words of the list. A word that
            is partly in a span belongs to it.
        pooling: As in `embed_sentences`; the mean knows the context of a span, SIF does not.
        layers: As in `embed_sentences`.
        state: As in `embed`.

    Returns:
        float32 (N, 2D) for N spans, with all layers (N, L, 2D).

    Raises:
        InputError: for a span that is empty, outside the text or without a word.
    """
    pool = Pooling(embedder, pooling, layers=layers)
    words = split_sentence(text, lambda string: embedder.tokenizer.tokenize(string), where="`text`")
    if isinstance(text, str):
        offsets, length, unit = align(words, text), len(text), "characters"
    else:
        offsets, length, unit = tuple((k, k + 1) for k in range(len(words))), len(words), "words"
    if offsets is None:
        raise InputError("`text` and its tokens differ. Give the list of words, and spans of them.")
    places: list[tuple[int, int]] = []
    for number, span in enumerate(spans):
        if np.shape(span) != (2,) or not all(isinstance(x, int | np.integer) for x in span):
            raise TypeError(f"spans[{number}] must be a pair (start, end), got {span!r:.60}.")
        start, end = span
        if not 0 <= start < end <= length:
            raise InputError(
                f"spans[{number}], [{start}, {end}), is empty or outside the {length:,} {unit}."
            )
        if (place := covering_words(offsets, start, end)) is None:
            raise InputError(f"spans[{number}], [{start}, {end}), contains no word. Leave it out.")
        places.append(place)
    stream = embedder.stream_with_states(
        [words], layers=pool.layers, state=state, check_words=unit == "words"
    )
    vectors, _ = next(stream)
    pooled = [pool(vectors[..., first:last, :], words[first:last]) for first, last in places]
    shape = (*vectors.shape[:-2], vectors.shape[-1])
    return np.array(pooled, dtype=np.float32).reshape(-1, *shape)
