"""fastText's binary models (``.bin``): vectors of words, including words that it never saw.

The file has magic and version, settings, the dictionary, and a matrix with a row per word and per
bucket of character n-grams. A word's vector is the mean of its own row, if any, and those of its
n-grams. The matrix is memory-mapped; a compressed file is read once from start to end.

Source: fastText 0.9.2, ``args.cc``, ``dictionary.cc``, ``densematrix.cc``, ``fasttext.cc``.
"""

import struct
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

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
_END_OF_SENTENCE = "</s>"  # the only word without n-grams


@dataclass(frozen=True)
class Subwords:
    """How a model maps a word to the rows of its n-grams; without them, ``max_characters`` is 0."""

    num_words: int
    num_buckets: int
    min_characters: int
    max_characters: int

    def rows(self, word: str) -> list[int]:
        """Return the rows of a word's n-grams, with repetitions."""
        if self.num_buckets == 0 or word == _END_OF_SENTENCE:
            return []
        raw = f"<{word}>".encode("utf-8", "surrogatepass")
        return [self.num_words + value % self.num_buckets for value in self._hashes(raw)]

    def _hashes(self, word: bytes) -> Iterator[int]:
        """Yield the FNV-1a hash (of signed bytes) of every n-gram in order."""
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
    """Tell whether a file that begins with ``head`` has this format."""
    return head.startswith(MAGIC)


def read(stream: ByteStream, only: Collection[str] | None) -> StaticVectors:
    """Read the vectors of a fastText model.

    ``only`` are the wanted words; those with no spelling in the dictionary get a vector from their
    n-grams, unless they hold a line feed, which no list of words can. None: all words of the
    dictionary.

    Raises:
        FormatError: for a quantized, truncated or damaged file, with its position.
    """
    dim, num_buckets, min_characters, max_characters = _read_settings(stream)
    kept = KeptVectors(only)
    num_words, ids = _read_dictionary(stream, kept)
    if stream.take(1, "the quantization flag") != b"\0":
        raise FormatError(
            f"{stream.path}: a quantized fastText model (.ftz) cannot be read. Give the model that "
            "it was made from (.bin), or its text form (.vec)."
        )
    num_rows, width = _MATRIX.unpack(stream.take(_MATRIX.size, "the size of the matrix"))
    if width != dim or num_rows != num_words + num_buckets:
        raise FormatError(
            f"{stream.path}, byte {stream.position - _MATRIX.size:,}: a matrix of {num_rows:,} "
            f"rows of {width:,}, but the header has {num_words:,} words, {num_buckets:,} buckets "
            f"and width {dim}. The file is damaged."
        )
    subwords = Subwords(num_words, num_buckets, min_characters, max_characters)
    known = ((word, [number, *subwords.rows(word)]) for word, number in ids.items())
    listable = sorted(word for word in set(only or ()) if "\n" not in word)
    unknown = (word for word in listable if ids.keys().isdisjoint(spellings(word)))
    unseen = ((word, rows) for word in unknown if (rows := subwords.rows(word)))
    for word, vector in _means(stream, chain(known, unseen), num_rows, dim):
        kept.keep(word, vector, str(stream.path))
    return kept.vectors(dim)


def _read_settings(stream: ByteStream) -> tuple[int, int, int, int]:
    """Return width, buckets, and the lengths of the shortest and longest n-gram."""
    stream.take(len(MAGIC), "the magic number")
    (version,) = struct.unpack("<i", stream.take(4, "the version"))
    if version not in _VERSIONS:
        raise FormatError(
            f"{stream.path}: fastText format {version}; only {_VERSIONS[0]} and {_VERSIONS[1]} can "
            "be read. Give the text form (.vec)."
        )
    values = _SETTINGS.unpack(stream.take(_SETTINGS.size, "the settings"))
    dim, model, num_buckets, min_characters, max_characters = (values[i] for i in (0, 7, 8, 9, 10))
    if version == _VERSIONS[0] and model == _SUPERVISED:  # had no n-grams
        max_characters = 0
    if not (0 < dim <= MAX_DIM and num_buckets >= 0):
        raise FormatError(
            f"{stream.path}: invalid header with width {dim} and {num_buckets} buckets. The file "
            "is damaged."
        )
    return dim, num_buckets, min_characters, max_characters


def _read_dictionary(stream: ByteStream, kept: KeptVectors) -> tuple[int, dict[str, int]]:
    """Return the number of words, and the rows of the wanted ones."""
    what = "the dictionary"
    size, num_words, num_labels, _, num_pruned = _DICTIONARY.unpack(
        stream.take(_DICTIONARY.size, what)
    )
    if num_words < 1 or size != num_words + num_labels:
        raise FormatError(
            f"{stream.path}: invalid dictionary of {size:,} entries, {num_words:,} words and "
            f"{num_labels:,} labels. The file is damaged."
        )
    ids: dict[str, int] = {}
    for number in range(size):
        position = stream.position
        raw = stream.take_until(b"\0", MAX_WORD_BYTES, what)
        _, kind = _ENTRY_END.unpack(stream.take(_ENTRY_END.size, what))
        if kind != (_WORD if number < num_words else _LABEL):
            raise FormatError(
                f"{stream.path}, byte {position:,}: entry {number + 1:,} of the dictionary has "
                f"kind {kind}; words (0) come before labels (1). The file is damaged."
            )
        word = raw.decode("utf-8", "replace")  # words may be cut within a character
        if number < num_words and word not in ids and kept.wants(word):
            ids[word] = number
    stream.skip(8 * max(num_pruned, 0), what)
    return num_words, ids


def _means(
    stream: ByteStream, rows: Iterable[tuple[str, list[int]]], num_rows: int, dim: int
) -> Iterator[tuple[str, np.ndarray]]:
    """Yield each word with the mean of its rows; the stream is at the start of the matrix."""
    if stream.is_compressed:
        rows = list(rows)
        needed = sorted({row for _, of_word in rows for row in of_word})
        matrix = _read_rows(stream, needed, dim)
        places = {row: place for place, row in enumerate(needed)}
        rows = ((word, [places[row] for row in of_word]) for word, of_word in rows)
    else:
        path = Path(stream.path)
        if path.stat().st_size < stream.position + 4 * num_rows * dim:
            raise stream.cut(f"the matrix of {num_rows:,} rows of {dim}")
        matrix = np.memmap(path, "<f4", mode="r", offset=stream.position, shape=(num_rows, dim))
    for word, of_word in rows:
        with np.errstate(all="ignore"):  # values that are not finite are refused by who keeps them
            mean = matrix[of_word].mean(axis=0, dtype=np.float32)
        yield word, np.asarray(mean)


def _read_rows(stream: ByteStream, needed: list[int], dim: int) -> np.ndarray:
    """Read rows of the matrix, in ascending order, from a file that cannot be mapped."""
    values = np.empty((len(needed), dim), dtype=np.float32)
    at = 0
    for place, row in enumerate(needed):
        stream.skip(4 * dim * (row - at), "the matrix")
        values[place] = np.frombuffer(stream.take(4 * dim, "the matrix"), "<f4")
        at = row + 1
    return values


def _continues(byte: int) -> bool:  # a UTF-8 continuation byte
    return byte & 0xC0 == 0x80
