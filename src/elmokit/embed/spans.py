"""Vectors of spans of a text that is embedded as a whole (late chunking)."""

import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from elmokit.embed.pooling import check_pooling, pool
from elmokit.embed.streaming import StatePolicy
from elmokit.errors import InputError
from elmokit.files.location import counted, shown
from elmokit.inference.results import Layers
from elmokit.text.alignment import align
from elmokit.text.given_sentences import GivenSentence, split_sentence

if TYPE_CHECKING:
    from elmokit.embed.embedder import Embedder


def embed_spans(
    embedder: "Embedder",
    text: GivenSentence,
    spans: Iterable[tuple[int, int]],
    *,
    pooling: str = "mean",
    layers: Layers | str = "average",
    state: StatePolicy | str = "reset",
) -> np.ndarray:
    """Return one vector per span of a text, pooled over its words; each has read the whole text.

    Args:
        embedder: The model.
        text: A string, which may contain any number of sentences, or its words. It is read once,
            as one sentence; memory holds the vectors of all its words.
        spans: ``[start, end)`` of each, in characters of the string or in words of the list. They
            may overlap. A word that is partly in a span belongs to it.
        pooling: As in `embed_sentences`.
        layers: As in `embed_sentences`.
        state: As in `embed`.

    Returns:
        float32 (N, 2D) for N spans, with all layers (N, L, 2D).

    Raises:
        TypeError: if ``text`` or a span is of another type.
        ValueError: for a span that is empty, outside the text, or without a word; for an invalid
            option; for a string that is no text.
    """
    check_pooling(pooling)
    is_string = isinstance(text, str)
    words = split_sentence(text, lambda string: embedder.tokenizer.tokenize(string), where="`text`")
    offsets = align(words, text) if is_string else [(k, k + 1) for k in range(len(words))]
    if offsets is None:
        raise InputError(
            "The words that the model's tokenizer made of `text` are not found in it. Give the "
            "list of its words, and spans of words."
        )
    length = counted(len(text), "character") if is_string else counted(len(words), "word")
    places = list(_word_spans(offsets, spans, len(text) if is_string else len(words), length))
    stream = embedder.stream_with_states(
        [words], layers=layers, state=state, check_words=not is_string
    )
    vectors, _ = next(stream)
    pooled = [pool(vectors[..., first:last, :], pooling=pooling) for first, last in places]
    shape = (*vectors.shape[:-2], vectors.shape[-1])
    return np.array(pooled, dtype=np.float32).reshape(-1, *shape)


def _word_spans(
    offsets: Sequence[tuple[int, int]],
    spans: Iterable[tuple[int, int]],
    end_of_text: int,
    length: str,
) -> Iterator[tuple[int, int]]:
    """Yield the first word of each span and the one after its last."""
    starts, ends = np.array(offsets, dtype=np.int64).reshape(-1, 2).T
    for number, span in enumerate(spans):
        try:
            start, end = map(operator.index, span)
        except (TypeError, ValueError):
            raise TypeError(
                f"spans[{number}] must be a pair of whole numbers (start, end), got {shown(span)}."
            ) from None
        where = f"spans[{number}], [{start}, {end}),"
        if not 0 <= start < end <= end_of_text:
            raise InputError(
                f"{where} must have start < end and lie within the text, which has {length}."
            )
        inside = np.flatnonzero((starts < ends) & (starts < end) & (ends > start))
        if not len(inside):
            raise InputError(f"{where} contains no word of the text. Leave it out.")
        yield int(inside[0]), int(inside[-1]) + 1
