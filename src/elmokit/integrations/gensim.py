"""Vectors of a vocabulary as gensim's `KeyedVectors` (extra ``static``).

A word has another vector in every sentence; these are averages over sentences, or the word alone.
"""

import logging
from collections.abc import Iterable

import numpy as np

from elmokit.embed.embedder import Embedder
from elmokit.errors import InputError, MissingExtraError
from elmokit.inference.results import Layers, check_one_layer
from elmokit.integrations.shared import words_and_vectors
from elmokit.text.given_sentences import GivenSentence, check_words
from elmokit.text.normalization import normalize

try:
    from gensim.models import KeyedVectors
except ImportError as error:
    raise MissingExtraError("gensim", extra="static") from error

log = logging.getLogger(__name__)


def keyed_vectors(
    embedder: Embedder,
    words: Iterable[str] | None = None,
    *,
    sentences: Iterable[GivenSentence] | None = None,
    layers: Layers | str = "average",
    min_count: int = 1,
) -> KeyedVectors:
    """Return one vector per word, in gensim's own class, which searches, saves and loads them.

    Args:
        embedder: The model.
        words: The vocabulary; default: all words of ``sentences``.
        sentences: Text over which a word's vectors are averaged, read once; strings or lists of
            words, as in `Embedder.embed`. Without it, every word is a sentence of its own.
        layers: ``"average"``, ``"top"`` or the number of a layer.
        min_count: Words that are rarer in ``sentences`` are left out.

    Returns:
        Words in the order given, or by descending frequency; the attribute ``count`` of a word is
        how often it was seen. ``words`` are found in any spelling that the model reads alike; a
        warning counts those that are not found. Words that contain blanks must not be saved by
        ``save_word2vec_format(…, binary=True)``: what is read from that file are other vectors.

    Raises:
        InputError: without words and sentences, or if no word is left.
        TypeError, ValueError: as `Embedder.embed`.
    """
    check_one_layer(layers)
    wanted = None if words is None else list(dict.fromkeys(check_words(words)))
    if not wanted and (sentences is None or wanted is not None):
        raise InputError(
            "Give `words`, `sentences` or both: there is no vocabulary to embed. An empty list of "
            "`words` is none; None stands for those of `sentences`."
        )
    rows = _rows_of(embedder, wanted) if wanted is not None else {}
    if sentences is None:
        sentences = [[word] for word in rows]
    sums: list[np.ndarray] = [np.zeros(embedder.dim) for _ in rows]
    counts = [0] * len(rows)
    for tokens, vectors in words_and_vectors(embedder, sentences, layers=layers):
        for word, vector in zip(tokens, vectors, strict=True):
            if wanted is not None:
                row = rows.get(normalize(word, embedder.normalization))
            else:
                row = rows.setdefault(word, len(rows))
            if row is None:
                continue
            if row == len(sums):
                sums.append(np.zeros(embedder.dim))  # float64: a sum of many vectors
                counts.append(0)
            sums[row] += vector
            counts[row] += 1
    if wanted is None:
        row_of = dict(sorted(rows.items(), key=lambda pair: -counts[pair[1]]))
    else:
        row_of = {word: rows[normalize(word, embedder.normalization)] for word in wanted}
    least = max(min_count, 1)
    frequent = [word for word, row in row_of.items() if counts[row] >= least]
    if not frequent:
        raise InputError(f"No word occurs {least} or more times in `sentences`.")
    if wanted is not None and len(frequent) < len(wanted):
        log.warning(
            "%d of %d words are left out: they occur less than %d times in the sentences, such as "
            "%r", len(wanted) - len(frequent), len(wanted), least,
            next(word for word, row in row_of.items() if counts[row] < least),
        )  # fmt: skip
    means = [sums[row_of[word]] / counts[row_of[word]] for word in frequent]
    keyed = KeyedVectors(embedder.dim, count=0, dtype=np.float32)
    keyed.add_vectors(frequent, np.array(means, dtype=np.float32))
    for word in frequent:
        keyed.set_vecattr(word, "count", counts[row_of[word]])
    return keyed


def _rows_of(embedder: Embedder, words: Iterable[str]) -> dict[str, int]:
    """Return a row for each word as the model reads it: spellings that it reads alike share one."""
    read = dict.fromkeys(normalize(word, embedder.normalization) for word in words)
    return {word: row for row, word in enumerate(read)}
