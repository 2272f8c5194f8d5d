"""fastText's binary models (``.bin``): vectors of words, including words that it never saw.

A word's vector is the mean of its own row, if any, and those of its character n-grams. The file is
memory-mapped. Source: fastText 0.9.2, ``args.cc``, ``dictionary.cc``, ``densematrix.cc``,
``fasttext.cc``.
"""

import itertools
import mmap
import struct
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from elmokit.errors import FormatError, InputError
from elmokit.files.sources import COMPRESSIONS, damage
from elmokit.vectors.glove_word2vec_file import MAX_DIM, MAX_WORD_BYTES
from elmokit.vectors.static_vectors import StaticVectors, WordRows, spellings

MAGIC = struct.pack("<i", 793712314)
_SETTINGS, _DICTIONARY = struct.Struct("<13id"), struct.Struct("<3i2q")
_ENTRY_BYTES = struct.calcsize("<qb")
"""Of count and kind, which follow a word; labels follow the words."""
_MATRIX = struct.Struct("<?2q")
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
        longest = min(self.max_characters, len(marked))  # a damaged file may state billions
        ngrams = (
            marked[begin : begin + length]
            for begin in range(len(marked))
            for length in range(max(self.min_characters, 1), longest + 1)
            if begin + length <= len(marked)
        )
        hashes = (_hash(ngram) for ngram in ngrams if ngram not in ("<", ">"))
        return [self.num_words + value % self.num_buckets for value in hashes]


def _hash(ngram: str) -> int:
    """Return the FNV-1a hash, which fastText computes of signed bytes."""
    value = 2166136261
    for byte in ngram.encode("utf-8", "surrogatepass"):
        signed = byte if byte < 128 else byte | 0xFFFFFF00
        value = ((value ^ signed) * 16777619) % 2**32
    return value


def recognizes(head: bytes) -> bool:
    return head.startswith(MAGIC)


def read(path: Path, only: Collection[str] | None) -> StaticVectors:
    """Read the vectors of a fastText model.

    Words of ``only`` with no spelling in the dictionary get a vector from their n-grams, unless
    they hold a line feed, which no list of words can.
    """
    if path.suffix.lower() in COMPRESSIONS:
        raise InputError(f"{path}: a model of fastText is mapped into memory: decompress it.")
    rows = WordRows(path, only)
    advice = "It is truncated, or its header is wrong. Fetch it again."
    with (
        damage(path, advice, what="damaged fastText model"),
        path.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
    ):
        subwords, row_of, place = _parse(data, path, rows)
    known = ((word, [row, *subwords.rows(word)]) for word, row in row_of.items())
    listable = sorted(word for word in set(only or ()) if "\n" not in word)
    unknown = (word for word in listable if row_of.keys().isdisjoint(spellings(word)))
    unseen = ((word, numbers) for word in unknown if (numbers := subwords.rows(word)))
    matrix = np.memmap(path, "<f4", mode="r", **place)
    for word, numbers in itertools.chain(known, unseen):
        with np.errstate(all="ignore"):  # values that are not finite are refused with their word
            mean = matrix[numbers].mean(axis=0, dtype=np.float32)
        rows.add(word, np.asarray(mean))
    return rows.vectors(matrix.shape[1])


def _parse(
    data: mmap.mmap, path: Path, wanted: WordRows
) -> tuple[Subwords, dict[str, int], dict[str, Any]]:
    """Return the rows of n-grams and of the wanted words, and where the matrix of all rows is."""
    header = _SETTINGS.unpack_from(data, len(MAGIC))
    version, dim, kind, num_buckets, shortest, longest = (header[k] for k in (0, 1, 8, 9, 10, 11))
    if version not in (11, 12) or not 0 < dim <= MAX_DIM or num_buckets < 0:
        what = f"fastText format {version} of width {dim} with {num_buckets} buckets"
        raise FormatError(f"{path}: {what} cannot be read. Give the text form (.vec).")
    num_words, row_of, at = _read_dictionary(data, wanted)
    is_quantized, num_rows, width = _MATRIX.unpack_from(data, at)
    if is_quantized:
        raise FormatError(f"{path}: quantized fastText (.ftz): give the .bin or .vec instead.")
    at += _MATRIX.size
    is_whole = len(data) >= at + 4 * num_rows * dim
    if num_words < 0 or width != dim or num_rows != num_words + num_buckets or not is_whole:
        raise ValueError(
            f"a matrix of {num_rows:,} rows of {width:,} for {num_words:,} words, "
            f"{num_buckets:,} buckets and width {dim}"
        )
    if version == 11 and kind == _SUPERVISED:  # had no n-grams
        longest = 0
    subwords = Subwords(num_words, num_buckets, shortest, longest)
    return subwords, row_of, {"offset": at, "shape": (num_rows, dim)}


def _read_dictionary(data: mmap.mmap, wanted: WordRows) -> tuple[int, dict[str, int], int]:
    """Return the number of words, the rows of the wanted ones, and where the dictionary ends."""
    at = len(MAGIC) + _SETTINGS.size
    num_entries, num_words, _, _, num_pruned = _DICTIONARY.unpack_from(data, at)
    at += _DICTIONARY.size
    row_of: dict[str, int] = {}
    for row in range(num_entries):
        end = data.find(b"\0", at, at + MAX_WORD_BYTES)
        if end < 0:
            raise ValueError(f"word {row + 1:,} of {num_entries:,} has no end")
        word = data[at:end].decode("utf-8", "replace")  # words may be cut within a character
        at = end + 1 + _ENTRY_BYTES
        if row < num_words and word not in row_of and wanted.lacks(word):
            row_of[word] = row
    return num_words, row_of, at + 8 * max(num_pruned, 0)
