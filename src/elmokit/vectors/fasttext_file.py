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
    StaticVectors,
    WantedVectors,
    spellings,
)

MAGIC = struct.pack("<i", 793712314)
_VERSIONS = (11, 12)
_SETTINGS = struct.Struct("<13id")
_DICTIONARY = struct.Struct("<3i2q")
_ENTRY_END = struct.Struct("<qb")
_MATRIX = struct.Struct("<2q")
_SUPERVISED = 3
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
        marked = f"<{word}>"
        borders = (0, len(marked) - 1)
        lengths = range(max(self.min_characters, 1), self.max_characters + 1)
        ngrams = (
            marked[begin : begin + length]
            for begin in range(len(marked))
            for length in lengths
            if begin + length <= len(marked) and not (length == 1 and begin in borders)
        )
        return [self.num_words + _hash(ngram) % self.num_buckets for ngram in ngrams]


def _hash(ngram: str) -> int:
    """Return the FNV-1a hash, which fastText computes of signed bytes."""
    value = 2166136261
    for byte in ngram.encode("utf-8", "surrogatepass"):
        signed = byte if byte < 128 else byte | 0xFFFFFF00
        value = ((value ^ signed) * 16777619) % 2**32
    return value


def recognizes(head: bytes) -> bool:
    """Tell whether a file that begins with ``head`` has this format."""
    return head.startswith(MAGIC)


def read(stream: ByteStream, only: Collection[str] | None) -> StaticVectors:
    """Read the vectors of a fastText model.

    ``only`` are the wanted words; those with no spelling in the dictionary get a vector from their
    n-grams, unless they hold a line feed, which no list of words can. None: all words of the
    dictionary.
    """
    stream.take(len(MAGIC), "the magic number")
    settings = _SETTINGS.unpack(stream.take(_SETTINGS.size, "the settings"))
    version, dim = settings[:2]
    model, num_buckets, min_characters, max_characters = settings[8:12]
    if version == _VERSIONS[0] and model == _SUPERVISED:  # had no n-grams
        max_characters = 0
    if version not in _VERSIONS or not 0 < dim <= MAX_DIM or num_buckets < 0:
        raise FormatError(
            f"{stream.path}: fastText format {version} with vectors of {dim} numbers and "
            f"{num_buckets} buckets cannot be read, only formats {_VERSIONS[0]} and "
            f"{_VERSIONS[1]}. Give the text form (.vec)."
        )
    wanted = WantedVectors(only)
    num_words, row_of = _read_dictionary(stream, wanted)
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
    known = ((word, [row, *subwords.rows(word)]) for word, row in row_of.items())
    listable = sorted(word for word in set(only or ()) if "\n" not in word)
    unknown = (word for word in listable if row_of.keys().isdisjoint(spellings(word)))
    unseen = ((word, rows) for word in unknown if (rows := subwords.rows(word)))
    for word, vector in _means(stream, chain(known, unseen), num_rows, dim):
        wanted.add(word, vector, str(stream.path))
    return wanted.vectors(dim)


def _read_dictionary(stream: ByteStream, wanted: WantedVectors) -> tuple[int, dict[str, int]]:
    """Return the number of words, and the rows of the wanted ones. Labels follow the words."""
    what = "the dictionary"
    sizes = _DICTIONARY.unpack(stream.take(_DICTIONARY.size, what))
    num_entries, num_words, _, _, num_pruned = sizes
    row_of: dict[str, int] = {}
    for row in range(num_entries):
        raw = stream.take_until(b"\0", MAX_WORD_BYTES, what)
        stream.take(_ENTRY_END.size, what)
        word = raw.decode("utf-8", "replace")  # words may be cut within a character
        if row < num_words and word not in row_of and wanted.lacks(word):
            row_of[word] = row
    stream.skip(8 * max(num_pruned, 0), what)
    return num_words, row_of


def _means(
    stream: ByteStream, rows: Iterable[tuple[str, list[int]]], num_rows: int, dim: int
) -> Iterator[tuple[str, np.ndarray]]:
    """Yield each word with the mean of its rows; the stream is at the start of the matrix."""
    if stream.is_compressed:
        rows = list(rows)
        needed = sorted({row for _, of_word in rows for row in of_word})
        place_of = {row: place for place, row in enumerate(needed)}
        matrix = np.empty((len(needed), dim), dtype=np.float32)
        # A compressed file has no way back, so rows are taken in its order.
        following = 0
        for place, row in enumerate(needed):
            stream.skip(4 * dim * (row - following), "the matrix")
            matrix[place] = np.frombuffer(stream.take(4 * dim, "the matrix"), "<f4")
            following = row + 1
        rows = ((word, [place_of[row] for row in of_word]) for word, of_word in rows)
    else:
        path = Path(stream.path)
        if path.stat().st_size < stream.position + 4 * num_rows * dim:
            raise stream.cut(f"the matrix of {num_rows:,} rows of {dim}")
        matrix = np.memmap(path, "<f4", mode="r", offset=stream.position, shape=(num_rows, dim))
    for word, of_word in rows:
        with np.errstate(all="ignore"):  # values that are not finite are refused with their word
            mean = matrix[of_word].mean(axis=0, dtype=np.float32)
        yield word, np.asarray(mean)
