"""Vectors of a vocabulary as gensim's `KeyedVectors` (extra ``static``).

A word has another vector in every sentence; these are averages over sentences, or the word alone.
"""

import logging
from collections.abc import Iterable

import numpy as np

from elmokit.embed.embedder import Embedder
from elmokit.errors import InputError, MissingExtraError
from elmokit.inference.results import Layers, check_one_layer
from elmokit.integrations.word_stream import words_and_vectors
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
    if words is None and sentences is None:
        raise InputError("Give `words`, `sentences` or both: there is no vocabulary to embed.")
    wanted = None if words is None else list(dict.fromkeys(check_words(words)))
    names: dict[str, list[str]] = {}  # of the wanted words, by what the model reads
    if wanted == []:
        raise InputError("`words` is empty. Give the words, or None for those of `sentences`.")
    for word in wanted or ():
        names.setdefault(normalize(word, embedder.normalization), []).append(word)
    if sentences is None:
        sentences = [[spellings[0]] for spellings in names.values()]
    rows: dict[str, int] = {word: row for row, word in enumerate(names)}
    sums = np.zeros((max(len(rows), 1024), embedder.dim))  # float64, doubled when full
    counts = np.zeros(len(sums), dtype=np.int64)
    for tokens, vectors in words_and_vectors(embedder, sentences, layers=layers):
        for word, vector in zip(tokens, vectors, strict=True):
            if wanted is not None:
                row = rows.get(normalize(word, embedder.normalization))
            else:
                row = rows.setdefault(word, len(rows))
            if row is None:
                continue
            if row == len(sums):
                sums = np.concatenate([sums, np.zeros_like(sums)])
                counts = np.concatenate([counts, np.zeros_like(counts)])
            sums[row] += vector
            counts[row] += 1
    if wanted is not None:
        rows = {word: rows[read] for read, spellings in names.items() for word in spellings}
        rows = {word: rows[word] for word in wanted}
    found = [word for word, row in rows.items() if counts[row] >= max(min_count, 1)]
    if not found:
        raise InputError(f"No word occurs {max(min_count, 1)} or more times in `sentences`.")
    if wanted is None:
        found.sort(key=lambda word: -counts[rows[word]])
    elif len(found) < len(wanted):
        missing = next(word for word in wanted if counts[rows[word]] < max(min_count, 1))
        log.warning(
            "%d of %d words are left out: they occur less than %d times in the sentences, such as "
            "%r", len(wanted) - len(found), len(wanted), max(min_count, 1), missing,
        )  # fmt: skip
    chosen = [rows[word] for word in found]
    keyed = KeyedVectors(embedder.dim, count=0, dtype=np.float32)
    keyed.add_vectors(found, (sums[chosen] / counts[chosen, None]).astype(np.float32))
    for word, count in zip(found, counts[chosen], strict=True):
        keyed.set_vecattr(word, "count", int(count))
    return keyed
