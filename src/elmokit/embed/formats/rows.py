"""Finished sentences on their way into files, and files with an array for each sentence."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, NamedTuple

import numpy as np

TOKENS_KEY = "tokens"
"""Name under which files hold the words of a sentence, as JSON where there are no lists."""
READ_ADVICE = "Embed the text again, or fetch the file again."
"""How errors about a damaged file end."""

Sentence = tuple[list[str] | None, np.ndarray]
"""Words, if the file has them, and vectors: (L, W, 2D) or (W, 2D), pooled (L, 2D) or (2D,)."""


class Row(NamedTuple):
    """A finished sentence."""

    line_number: int
    """In the input, from 0."""
    text: str | None
    """The line as it was read; None where that is not known."""
    tokens: list[str] | None
    vectors: np.ndarray
    """As in `Sentence`, in the dtype of the file."""

    def tokens_json(self) -> bytes | None:
        """Return the words as JSON; what UTF-8 cannot encode becomes ``?``."""
        if self.tokens is None:
            return None
        return json.dumps(self.tokens, ensure_ascii=False).encode("utf-8", "replace")


def tokens_from_json(data: bytes | str) -> list[str]:
    """Return the words; raise `ValueError` unless it is a list of strings."""
    tokens = json.loads(data)
    if not isinstance(tokens, list) or not all(isinstance(word, str) for word in tokens):
        raise ValueError("the words of a sentence must be a list of strings")
    return tokens


@contextmanager
def closed_at_end(file: Any) -> Iterator[Any]:
    """Close a file after writing; if writing fails, an error of closing it is not raised."""
    try:
        yield file
    except BaseException:
        with suppress(Exception):  # the first error is the one to report
            file.close()
        raise
    file.close()


class ArrayReader:
    """Reads sentences that are arrays under a name each.

    Args:
        names: Those that may be arrays of sentences. Other programs use the numbers of lines, also
            with zeros in front, or keys, such as ids or the sentences themselves.
        is_vectors: Asked about names that are no numbers: other arrays are passed over.
    """

    _opened: ExitStack
    """Set by the format; `close` closes it."""

    def __init__(self, names: list[str], is_vectors: Callable[[str], bool]) -> None:
        names = [name for name in names if _is_number(name) or is_vectors(name)]
        self.names: list[str] | None = names
        """Keys of the sentences; None if they are their line numbers."""
        self.indices = np.arange(len(names))
        """Line numbers, rising."""
        if all(map(_is_number, names)):
            numbers = np.fromiter(map(int, names), dtype=np.int64, count=len(names))
            order = np.argsort(numbers, kind="stable")
            is_plain = all(str(int(name)) == name for name in names)
            self.names = None if is_plain else [names[k] for k in order]
            self.indices = numbers[order]

    def sentence(self, name: str) -> Sentence:
        raise NotImplementedError

    def read(self, position: int) -> Sentence:
        return self.sentence(self.names[position] if self.names else str(self.indices[position]))

    def __iter__(self) -> Iterator[Sentence]:
        return map(self.read, range(len(self.indices)))

    def close(self) -> None:
        self._opened.close()


def _is_number(name: str) -> bool:
    return name.isascii() and name.isdecimal() and len(name) < 19  # int64
