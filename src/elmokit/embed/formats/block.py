"""The blocks of sentences that embedding files are written in."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

TOKENS_KEY = "tokens"
"""Name under which files hold the words of a sentence, as JSON where there are no lists."""
READ_ADVICE = "Embed the text again, or fetch the file again."
"""How errors about a damaged file end."""

Sentence = tuple[list[str] | None, np.ndarray]
"""Words, if the file has them, and vectors: (L, W, 2D) or (W, 2D), pooled (L, 2D) or (2D,)."""


def tokens_from_json(data: bytes | str) -> list[str]:
    """Return the words; raise `ValueError` unless it is a list of strings."""
    tokens = json.loads(data)
    if not isinstance(tokens, list) or not all(isinstance(word, str) for word in tokens):
        raise ValueError("the words of a sentence must be a list of strings")
    return tokens


def sentence_numbers(names: Iterable[str]) -> np.ndarray:
    """Return the numbers among the names of arrays, rising."""
    numbers = (int(name) for name in names if name.isascii() and name.isdecimal())
    return np.sort(np.fromiter(numbers, dtype=np.int64))


@dataclass(frozen=True)
class Block:
    """Some finished sentences, in order."""

    indices: list[int]
    """Line numbers in the input, from 0, rising."""
    texts: list[str | None]
    """The lines as they were read; None where that is not known."""
    tokens: list[list[str] | None]
    """The words of each line; None where they are not known."""
    vectors: list[np.ndarray]
    """(L, W, 2D) or (W, 2D), pooled (L, 2D) or (2D,); in the dtype of the file."""

    def rows(self) -> Iterator[tuple[int, bytes | None, np.ndarray]]:
        """Yield the index of each sentence, its words as JSON, if they are known, and its vectors.

        What UTF-8 cannot encode becomes ``?``.
        """
        for index, tokens, vectors in zip(self.indices, self.tokens, self.vectors, strict=True):
            text = None if tokens is None else json.dumps(tokens, ensure_ascii=False)
            yield index, None if text is None else text.encode("utf-8", "replace"), vectors
