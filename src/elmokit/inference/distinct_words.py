"""Distinct words: the token layer ignores the context, so it needs each word only once."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Integer

from elmokit.text.char_vocab import SENTENCE_BEGIN_WORD, SENTENCE_END_WORD


@dataclass(frozen=True)
class DistinctTokens:
    """The distinct words of some sentences, and the sentences as indices into them."""

    words: list[str]
    """U words, the first two ``<S>`` and ``</S>``."""
    sentences: list[Integer[np.ndarray, " _"]]
    """For each sentence the indices of ``<S>``, its words, ``</S>``."""


def find_distinct_tokens(sentences: Sequence[Sequence[str]]) -> DistinctTokens:
    """Number the distinct words of ``sentences``, given without boundaries."""
    rows: dict[str, int] = {SENTENCE_BEGIN_WORD: 0, SENTENCE_END_WORD: 1}
    indices = []
    for sentence in sentences:
        index = [rows.setdefault(word, len(rows)) for word in sentence]
        indices.append(np.array([0, *index, 1], dtype=np.int64))
    return DistinctTokens(list(rows), indices)
