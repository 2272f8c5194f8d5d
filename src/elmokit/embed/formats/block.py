"""The blocks of sentences that embedding files are written in."""

import json
from collections.abc import Callable, Iterable, Iterator
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


def sentence_names(
    names: Iterable[str], is_vectors: Callable[[str], bool]
) -> tuple[np.ndarray, list[str] | None]:
    """Return the line numbers of sentences, rising, and the names of their arrays.

    The names are None if they are these numbers. Other programs also use numbers that begin with
    zeros, or keys, such as ids or the sentences themselves: these are numbered in the order given.
    ``is_vectors`` is asked about other names that stand among numbers.
    """
    names = list(names)
    if any(map(_is_number, names)):
        names = [name for name in names if _is_number(name) or is_vectors(name)]
    if all(map(_is_number, names)):
        numbers = np.fromiter(map(int, names), dtype=np.int64, count=len(names))
        order = np.argsort(numbers)
        numbers = numbers[order]
        if (np.diff(numbers) > 0).all():
            is_plain = all(str(int(name)) == name for name in names)
            return numbers, None if is_plain else [names[k] for k in order]
    return np.arange(len(names)), names


def _is_number(name: str) -> bool:
    return name.isascii() and name.isdecimal() and len(name) < 19  # int64


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
