"""Each distinct word once: the token layer does not know the context, so its answer is shared."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Integer

from elmokit.text.char_vocab import SENTENCE_BEGIN_WORD, SENTENCE_END_WORD


@dataclass(frozen=True)
class DistinctTokens:
    """The distinct words of some sentences, and the sentences as indices into them."""

    ids: Integer[np.ndarray, "U ..."]
    """Character ids (U, C), or word ids (U,); rows 0 and 1 are ``<S>`` and ``</S>``."""
    sentences: list[Integer[np.ndarray, " _"]]
    """For each sentence the rows of ``<S>``, its words, ``</S>``."""


def find_distinct_tokens(
    sentences: Sequence[Sequence[str]], encode: Callable[[Sequence[str]], np.ndarray]
) -> DistinctTokens:
    """Number the distinct words of ``sentences``, and encode each once.

    Args:
        sentences: Lists of words, without boundaries.
        encode: Words to rows of ids.
    """
    rows: dict[str, int] = {SENTENCE_BEGIN_WORD: 0, SENTENCE_END_WORD: 1}
    indices = []
    for sentence in sentences:
        index = [rows.setdefault(word, len(rows)) for word in sentence]
        indices.append(np.array([0, *index, 1], dtype=np.int64))
    return DistinctTokens(encode(list(rows)), indices)
