"""Vectors of a vocabulary as gensim's `KeyedVectors` (extra ``static``).

A word has another vector in every sentence; these are averages over sentences, or the word alone.
"""

import logging
from collections import Counter
from collections.abc import Iterable
from functools import partial

import numpy as np

from elmokit.embed.embedder import Embedder
from elmokit.errors import InputError
from elmokit.inference.results import Layers, check_one_layer
from elmokit.integrations.shared import needs_extra
from elmokit.text.given_sentences import GivenSentence, check_words
from elmokit.text.normalization import Normalization, normalize

with needs_extra("static", module="gensim"):
    from gensim.models import KeyedVectors

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
        words: The vocabulary, in any spelling that the model reads alike; default: all words of
            ``sentences``, by descending frequency. A warning counts those that are not found.
        sentences: Text over which a word's vectors are averaged, read once; strings or lists of
            words, as in `Embedder.embed`. Without it, every word is a sentence of its own.
        layers: ``"average"``, ``"top"`` or the number of a layer.
        min_count: Words that are rarer in ``sentences`` are left out.

    Returns:
        Vectors with the attribute ``count``. Words that contain blanks must not be saved by
        ``save_word2vec_format(…, binary=True)``: what is read from that file are other vectors.
    """
    check_one_layer(layers)
    wanted = None if words is None else list(dict.fromkeys(check_words(words)))
    if not (wanted or (wanted is None and sentences is not None)):
        raise InputError("Give `words`, `sentences` or both: there is no vocabulary to embed.")
    # without `words`, every spelling is a word of its own
    form: Normalization = "none" if wanted is None else embedder.normalization
    read = partial(normalize, form=form)
    keys = None if wanted is None else dict.fromkeys(map(read, wanted))
    sums: dict[str, np.ndarray] = {}
    counts: Counter[str] = Counter()
    texts = [[key] for key in keys or ()] if sentences is None else sentences
    for sentence in embedder.stream(texts, layers=layers):
        for key, vector in zip(map(read, sentence.words), sentence.vectors, strict=True):
            if keys is None or key in keys:
                counts[key] += 1
                # a sum of many vectors needs float64
                sums[key] = sums.get(key, 0.0) + vector.astype(np.float64)
    names = [word for word, _ in counts.most_common()] if wanted is None else wanted
    least = max(min_count, 1)
    frequent = [word for word in names if counts[read(word)] >= least]
    if not frequent:
        raise InputError(f"No word occurs {least} or more times in `sentences`.")
    if rare := [word for word in wanted or () if counts[read(word)] < least]:
        message = "%d of %d words are too rare and left out: %r …"
        log.warning(message, len(rare), len(names), rare[0])
    keyed = KeyedVectors(embedder.dim, count=0, dtype=np.float32)
    means = [sums[read(word)] / counts[read(word)] for word in frequent]
    keyed.add_vectors(frequent, np.array(means, dtype=np.float32))
    for word in frequent:
        keyed.set_vecattr(word, "count", counts[read(word)])
    return keyed
