"""fastText's binary models (``.bin``): vectors of words, including words that it never saw.

A word's vector is the mean of its own row, if any, and those of its character n-grams. The matrix
is memory-mapped; a compressed file is decompressed to a temporary one. Source: fastText 0.9.2,
``args.cc``, ``dictionary.cc``, ``densematrix.cc``, ``fasttext.cc``.
"""

import os
import struct
from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from io import BufferedReader
from itertools import chain
from pathlib import Path

import numpy as np

from elmokit.errors import FormatError
from elmokit.files.atomic import named
from elmokit.files.sources import COMPRESSIONS, read_pieces
from elmokit.files.temporary import scratch_directory
from elmokit.vectors import static_vectors as static

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
        if self.num_buckets == 0 or word == _END_OF_SENTENCE:
            return []
        marked = f"<{word}>"
        borders = (0, len(marked) - 1)
        # a damaged file may state billions
        longest = min(self.max_characters, len(marked))
        lengths = range(max(self.min_characters, 1), longest + 1)
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
    return head.startswith(MAGIC)


def read(path: Path, only: Collection[str] | None) -> static.StaticVectors:
    """Read the vectors of a fastText model.

    Words of ``only`` with no spelling in the dictionary get a vector from their n-grams, unless
    they hold a line feed, which no list of words can.
    """
    if path.suffix.lower() not in COMPRESSIONS:
        return _read(path, path, only)
    with scratch_directory("elmokit-fasttext") as folder:  # a compressed file has no way back
        plain = folder / "model.bin"
        with named(plain), plain.open("wb") as file:
            file.writelines(read_pieces(path))
        return _read(path, plain, only)


def _read(path: Path, plain: Path, only: Collection[str] | None) -> static.StaticVectors:
    with plain.open("rb") as stream:
        take = partial(static.read_exactly, stream, what="the header", path=path)
        take(len(MAGIC))
        settings = _SETTINGS.unpack(take(_SETTINGS.size))
        version, dim = settings[:2]
        model, num_buckets, min_characters, max_characters = settings[8:12]
        if version == _VERSIONS[0] and model == _SUPERVISED:  # had no n-grams
            max_characters = 0
        if version not in _VERSIONS or not 0 < dim <= static.MAX_DIM or num_buckets < 0:
            kind = f"fastText format {version} of width {dim} with {num_buckets} buckets"
            raise FormatError(f"{path}: {kind} cannot be read. Give the text form (.vec).")
        rows = static.WordRows(path, only, unit="word")
        num_words, row_of = _read_dictionary(stream, path, rows)
        if take(1) != b"\0":
            raise FormatError(f"{path}: quantized fastText (.ftz): give the .bin or .vec instead.")
        num_rows, width = _MATRIX.unpack(take(_MATRIX.size))
        begin = stream.tell()
    is_whole = plain.stat().st_size >= begin + 4 * num_rows * dim
    if width != dim or num_rows != num_words + num_buckets or not is_whole:
        raise FormatError(
            f"{path}: damaged or truncated: a matrix of {num_rows:,} rows of {width:,}, but the "
            f"header has {num_words:,} words, {num_buckets:,} buckets and width {dim}."
        )
    subwords = Subwords(num_words, num_buckets, min_characters, max_characters)
    known = ((word, [row, *subwords.rows(word)]) for word, row in row_of.items())
    listable = sorted(word for word in set(only or ()) if "\n" not in word)
    unknown = (word for word in listable if row_of.keys().isdisjoint(static.spellings(word)))
    unseen = ((word, numbers) for word in unknown if (numbers := subwords.rows(word)))
    matrix = np.memmap(plain, "<f4", mode="r", offset=begin, shape=(num_rows, dim))
    for word, numbers in chain(known, unseen):
        with np.errstate(all="ignore"):  # values that are not finite are refused with their word
            mean = matrix[numbers].mean(axis=0, dtype=np.float32)
        rows.add(word, np.asarray(mean))
    return rows.vectors(dim)


def _read_dictionary(
    stream: BufferedReader, path: Path, wanted: static.WordRows
) -> tuple[int, dict[str, int]]:
    """Return the number of words, and the rows of the wanted ones. Labels follow the words."""
    what = "the dictionary"
    sizes = _DICTIONARY.unpack(static.read_exactly(stream, _DICTIONARY.size, what=what, path=path))
    num_entries, num_words, _, _, num_pruned = sizes
    row_of: dict[str, int] = {}
    for row in range(num_entries):
        raw = static.read_until(stream, b"\0", what=what, path=path)
        static.read_exactly(stream, _ENTRY_END.size, what=what, path=path)
        word = raw.decode("utf-8", "replace")  # words may be cut within a character
        if row < num_words and word not in row_of and wanted.lacks(word):
            row_of[word] = row
    stream.seek(8 * min(max(num_pruned, 0), 1 << 40), os.SEEK_CUR)  # beyond the end if damaged
    return num_words, row_of
