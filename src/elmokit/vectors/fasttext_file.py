"""fastText's binary files (``.bin``): vectors of words, and of words that it never saw.

The file is magic and version, the settings of the training, the dictionary, then one matrix with a
row for each word and each bucket of character n-grams. The vector of a word is the mean of its own
row and of those of its n-grams; a word that is not in the dictionary has its n-grams alone. The
matrix is mapped, and only rows that are needed are read; a compressed file is read through once.

Source: fastText 0.9.2, ``args.cc``, ``dictionary.cc``, ``densematrix.cc``, ``fasttext.cc``.
"""

import struct
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from elmokit.errors import FormatError
from elmokit.files.byte_stream import ByteStream
from elmokit.vectors.static_vectors import (
    MAX_DIM,
    MAX_WORD_BYTES,
    KeptVectors,
    StaticVectors,
    spellings,
)

MAGIC = struct.pack("<i", 793712314)
_VERSIONS = (11, 12)
_SETTINGS = struct.Struct("<12id")
_DICTIONARY = struct.Struct("<3i2q")
_ENTRY_END = struct.Struct("<qb")
_MATRIX = struct.Struct("<2q")
_SUPERVISED = 3
_WORD, _LABEL = 0, 1
_END_OF_SENTENCE = "</s>"
"""The one word without n-grams."""


@dataclass(frozen=True)
class Subwords:
    """How a model turns a word into rows of its matrix.

    Args:
        num_words: Rows before those of the n-grams.
        num_buckets: Rows of the n-grams.
        min_characters: Of an n-gram.
        max_characters: Of an n-gram; 0: there are none.
    """

    num_words: int
    num_buckets: int
    min_characters: int
    max_characters: int

    def rows(self, word: str) -> list[int]:
        """Return the rows of a word's n-grams, those that occur twice in it twice."""
        if self.num_buckets == 0 or word == _END_OF_SENTENCE:
            return []
        raw = f"<{word}>".encode("utf-8", "surrogatepass")
        return [self.num_words + value % self.num_buckets for value in self._hashes(raw)]

    def _hashes(self, word: bytes) -> Iterator[int]:
        """Yield the hash (FNV-1a, its bytes taken as signed) of every n-gram, in their order."""
        for begin in range(len(word)):
            if _continues(word[begin]):
                continue
            value, num_characters = 2166136261, 0
            for end in range(begin, len(word)):
                byte = word[end]
                value = ((value ^ (byte if byte < 128 else byte | 0xFFFFFF00)) * 16777619) % 2**32
                if end + 1 < len(word) and _continues(word[end + 1]):
                    continue
                num_characters += 1
                if num_characters > self.max_characters:
                    break
                is_border = num_characters == 1 and (begin == 0 or end + 1 == len(word))
                if num_characters >= self.min_characters and not is_border:
                    yield value


def recognizes(head: bytes) -> bool:
    """Tell whether a file that begins like this is of the format."""
    return head.startswith(MAGIC)


def read(stream: ByteStream, only: Collection[str] | None) -> StaticVectors:
    """Read the vectors of a fastText model.

    Args:
        stream: At the beginning of the file.
        only: Words that are wanted; those that are in the dictionary in none of their `spellings`
            get a vector of their n-grams. None: all words of the dictionary.

    Raises:
        FormatError: for a quantised, cut or damaged file, with its position.
    """
    dim, num_buckets, min_characters, max_characters = _read_settings(stream)
    kept = KeptVectors(only)
    num_words, ids = _read_dictionary(stream, kept)
    if stream.take(1, "the mark of quantised files") != b"\0":
        raise FormatError(
            f"{stream.path}: a quantised fastText model (.ftz), whose vectors are only "
            "approximations in another layout. Give the model it was made from (.bin), or its text "
            "form (.vec)."
        )
    num_rows, width = _MATRIX.unpack(stream.take(_MATRIX.size, "the size of the matrix"))
    if width != dim or num_rows != num_words + num_buckets:
        raise FormatError(
            f"{stream.path}, byte {stream.position - _MATRIX.size:,}: a matrix of {num_rows:,} "
            f"rows of {width:,}, but {num_words:,} words, {num_buckets:,} buckets and width {dim} "
            "were announced. The file is damaged."
        )
    subwords = Subwords(num_words, num_buckets, min_characters, max_characters)
    words: dict[str, int | None] = {**ids}
    for word in sorted(only or ()):
        if not any(form in ids for form in spellings(word)):
            words[word] = None
    rows = ((word, _rows(word, number, subwords)) for word, number in words.items())
    rows = ((word, of_word) for word, of_word in rows if of_word)
    for word, vector in _means(stream, rows, num_rows, dim):
        kept.keep(word, vector, str(stream.path))
    return kept.vectors(dim)


def _rows(word: str, number: int | None, subwords: Subwords) -> list[int]:
    return [*([] if number is None else [number]), *subwords.rows(word)]


def _read_settings(stream: ByteStream) -> tuple[int, int, int, int]:
    """Return width, buckets, and the characters of the shortest and longest n-gram."""
    stream.take(len(MAGIC), "the magic number")
    (version,) = struct.unpack("<i", stream.take(4, "the version"))
    if version not in _VERSIONS:
        raise FormatError(
            f"{stream.path}: fastText's format {version}; only {_VERSIONS[0]} and {_VERSIONS[1]} "
            "can be read. Give the text form (.vec)."
        )
    values = _SETTINGS.unpack(stream.take(_SETTINGS.size, "the settings"))
    dim, model, num_buckets, min_characters, max_characters = (values[i] for i in (0, 7, 8, 9, 10))
    if version == _VERSIONS[0] and model == _SUPERVISED:  # these had no n-grams
        max_characters = 0
    if not (0 < dim <= MAX_DIM and num_buckets >= 0):
        raise FormatError(
            f"{stream.path}: vectors of {dim} numbers and {num_buckets} buckets cannot be. The "
            "file is damaged."
        )
    return dim, num_buckets, min_characters, max_characters


def _read_dictionary(stream: ByteStream, kept: KeptVectors) -> tuple[int, dict[str, int]]:
    """Return the number of words, and the rows of those that are wanted."""
    what = "the dictionary"
    size, num_words, num_labels, _, num_pruned = _DICTIONARY.unpack(
        stream.take(_DICTIONARY.size, what)
    )
    if num_words < 1 or size != num_words + num_labels:
        raise FormatError(
            f"{stream.path}: a dictionary of {size:,} entries, {num_words:,} of them words and "
            f"{num_labels:,} labels, cannot be. The file is damaged."
        )
    ids: dict[str, int] = {}
    for number in range(size):
        position = stream.position
        raw = stream.take_until(b"\0", MAX_WORD_BYTES, what)
        _, kind = _ENTRY_END.unpack(stream.take(_ENTRY_END.size, what))
        if kind != (_WORD if number < num_words else _LABEL):
            raise FormatError(
                f"{stream.path}, byte {position:,}: entry {number + 1:,} of the dictionary is of "
                f"kind {kind}, and words (0) come before labels (1). The file is damaged."
            )
        word = raw.decode("utf-8", "replace")  # the training may have cut a word inside a letter
        if number < num_words and word not in ids and kept.wants(word):
            ids[word] = number
    stream.skip(8 * max(num_pruned, 0), what)
    return num_words, ids


def _means(
    stream: ByteStream, rows: Iterable[tuple[str, list[int]]], num_rows: int, dim: int
) -> Iterator[tuple[str, np.ndarray]]:
    """Yield each word with the mean of its rows of the matrix, at whose beginning the stream is."""
    if stream.is_compressed:
        rows = list(rows)
        needed = sorted({row for _, of_word in rows for row in of_word})
        matrix = _read_rows(stream, needed, dim)
        places = {row: place for place, row in enumerate(needed)}
        rows = ((word, [places[row] for row in of_word]) for word, of_word in rows)
    else:
        if stream.path.stat().st_size < stream.position + 4 * num_rows * dim:
            raise stream.cut(f"the matrix of {num_rows:,} rows of {dim}")
        matrix = np.memmap(
            stream.path, "<f4", mode="r", offset=stream.position, shape=(num_rows, dim)
        )
    for word, of_word in rows:
        yield word, np.asarray(matrix[of_word].mean(axis=0, dtype=np.float32))


def _read_rows(stream: ByteStream, needed: list[int], dim: int) -> np.ndarray:
    """Return rows of the matrix, by rising number, from a file that cannot be mapped."""
    values = np.empty((len(needed), dim), dtype=np.float32)
    at = 0
    for place, row in enumerate(needed):
        stream.skip(4 * dim * (row - at), "the matrix")
        values[place] = np.frombuffer(stream.take(4 * dim, "the matrix"), "<f4")
        at = row + 1
    return values


def _continues(byte: int) -> bool:
    """Whether a byte of UTF-8 is not the first of its character."""
    return byte & 0xC0 == 0x80
