"""The blocks of sentences that embedding files are written in."""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np

from elmokit.errors import InputError, shown
from elmokit.weights.card import METADATA_KEY

TOKENS_KEY = "tokens"
"""Name under which files hold the words of a sentence, as JSON where there are no lists."""
LINES_KEY = "line_numbers"
"""Name under which files whose keys are ids hold JSON: the line number of each id."""
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


def names_of_lines(table: str, names: Iterable[str]) -> tuple[np.ndarray, list[str]]:
    """Return the line numbers of sentences, rising, and their ids, from JSON of `LINES_KEY`."""
    lines = json.loads(table)
    if set(lines) != set(names) or not all(type(line) is int for line in lines.values()):
        raise ValueError(f"`{LINES_KEY}` does not fit the sentences")
    keys = sorted(lines, key=lines.__getitem__)
    return np.array([lines[key] for key in keys], dtype=np.int64), keys


def check_key(key: str, *, is_path: bool, where: str = "") -> None:
    """Raise `InputError` for an id that cannot name an array; ``is_path``: ``/`` makes groups."""
    reserved = (LINES_KEY, METADATA_KEY, f"{TOKENS_KEY}/")
    if key.startswith(reserved) or (is_path and ("/" in key or key == ".")):
        raise InputError(
            f"{where}the id {shown(key)} cannot be a name in this kind of file"
            f"{': HDF5 makes groups of names with `/`; use .npz or .parquet' if is_path else ''}."
        )


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
    keys: list[str] | None = None
    """Ids of the sentences; None if their line numbers are their keys."""

    def rows(self) -> Iterator[tuple[str, bytes | None, np.ndarray]]:
        """Yield the key of each sentence, its words as JSON, if they are known, and its vectors.

        What UTF-8 cannot encode becomes ``?``.
        """
        keys = map(str, self.indices) if self.keys is None else self.keys
        for key, tokens, vectors in zip(keys, self.tokens, self.vectors, strict=True):
            text = None if tokens is None else json.dumps(tokens, ensure_ascii=False)
            yield key, None if text is None else text.encode("utf-8", "replace"), vectors

    def lines_of_keys(self) -> dict[str, int]:
        return {} if self.keys is None else dict(zip(self.keys, self.indices, strict=True))


class ArrayReader:
    """Reads sentences that are arrays under a name each.

    A format sets ``indices``, the rising line numbers, and ``names``, their keys (None: the
    numbers), and closes ``opened``.
    """

    indices: np.ndarray
    names: list[str] | None
    opened: ExitStack

    def _find_sentences(
        self, names: list[str], lines: str | None, is_vectors: Callable[[str], bool]
    ) -> None:
        """Set ``indices`` and ``names``; ``lines`` is JSON of `LINES_KEY`, if the file has it."""
        if lines is None:
            self.indices, self.names = sentence_names(names, is_vectors)
        else:
            self.indices, self.names = names_of_lines(lines, names)

    def sentence(self, name: str) -> Sentence:
        raise NotImplementedError

    def read(self, position: int) -> Sentence:
        return self.sentence(self.names[position] if self.names else str(self.indices[position]))

    def __iter__(self) -> Iterator[Sentence]:
        return map(self.read, range(len(self.indices)))

    def close(self) -> None:
        self.opened.close()
