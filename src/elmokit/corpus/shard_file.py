"""One shard file: its distinct words, its sentences as indices into them.

A shard stands by itself. Words are length-prefixed UTF-8, so that a word may hold any code point,
white space included. Little-endian, without gaps:

    8 bytes   ``ELMOKSH1``
    4 x u64   distinct words N, bytes of all distinct words, sentences S, words n
    u32 (N,)  bytes of each distinct word     u8   their UTF-8 (lone surrogates passed through)
    u32 (S,)  words of each sentence          u32 (n,)  indices into the distinct words
"""

import hashlib
import itertools
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from elmokit.errors import FormatError
from elmokit.files.atomic import atomic_file
from elmokit.files.hashing import check_file

MENDING = "Delete the directory and write the shards again from the text."
"""How every damage to a shard directory is mended."""
_MAGIC = b"ELMOKSH1"
_HEADER_BYTES = len(_MAGIC) + 4 * 8


@dataclass(frozen=True)
class Shard:
    """A loaded shard: sentence ``s`` is ``words[t] for t in tokens[offsets[s]:offsets[s + 1]]``.

    `merge_shards` makes one of several.
    """

    words: list[str]
    """The distinct words, in the order of their first use."""
    tokens: np.ndarray
    """uint32 (n,): every word of every sentence, as an index into ``words``."""
    offsets: np.ndarray
    """int64 (num_sentences + 1,): where each sentence begins in ``tokens``."""

    @property
    def num_sentences(self) -> int:
        """Sentences of the shard."""
        return len(self.offsets) - 1

    @property
    def num_words(self) -> int:
        """Words of all sentences together."""
        return len(self.tokens)

    def sentence(self, index: int) -> list[str]:
        """Return one sentence as words."""
        tokens = self.tokens[self.offsets[index] : self.offsets[index + 1]]
        return [self.words[token] for token in tokens.tolist()]

    def sentences(self) -> Iterator[list[str]]:
        """Yield all sentences in the order they were written."""
        return (self.sentence(index) for index in range(self.num_sentences))


def merge_shards(shards: Sequence[Shard]) -> Shard:
    """Return the sentences of several shards, one shard's after another's, as one shard."""
    if len(shards) == 1:
        return shards[0]
    ids: dict[str, int] = {}
    tokens = [
        np.array([ids.setdefault(word, len(ids)) for word in shard.words], np.uint32)[shard.tokens]
        for shard in shards
    ]
    offsets, begin = [np.zeros(1, dtype=np.int64)], 0
    for shard in shards:
        offsets.append(shard.offsets[1:] + begin)
        begin += shard.num_words
    return Shard(list(ids), np.concatenate(tokens), np.concatenate(offsets))


@dataclass(frozen=True)
class ShardEntry:
    """What the manifest says of one shard file."""

    file: str
    num_bytes: int
    sha256: str
    num_sentences: int
    num_words: int
    num_distinct_words: int

    def check(self, path: Path) -> None:
        """Raise `FormatError` unless the file is what the manifest says."""
        check_file(path, num_bytes=self.num_bytes, sha256=self.sha256, advice=MENDING)


class ShardBuilder:
    """Collects the sentences of one shard."""

    def __init__(self) -> None:
        self._index_of_word = _GrowingIndex()
        self._tokens = array("I")
        self._lengths = array("I")

    @property
    def num_words(self) -> int:
        """Words added so far."""
        return len(self._tokens)

    def add(self, sentence: Sequence[str]) -> None:
        """Append a sentence."""
        self._tokens.extend(map(self._index_of_word.__getitem__, sentence))
        self._lengths.append(len(sentence))

    def write(self, directory: Path, *, index: int) -> ShardEntry:
        """Write the shard as number ``index`` of a directory, whole or not at all."""
        words = [word.encode("utf-8", "surrogatepass") for word in self._index_of_word]
        blob = b"".join(words)
        counts = [len(words), len(blob), len(self._lengths), len(self._tokens)]
        parts = [
            _MAGIC,
            np.array(counts, dtype="<u8").tobytes(),
            np.fromiter(map(len, words), dtype="<u4", count=len(words)).tobytes(),
            blob,
            np.asarray(self._lengths, dtype="<u4").tobytes(),
            np.asarray(self._tokens, dtype="<u4").tobytes(),
        ]
        name = f"shard-{index:05d}.bin"
        digest = hashlib.sha256()
        for part in parts:
            digest.update(part)
        with atomic_file(directory / name) as temp_path, temp_path.open("wb") as file:
            file.writelines(parts)
        return ShardEntry(
            file=name,
            num_bytes=sum(map(len, parts)),
            sha256=digest.hexdigest(),
            num_sentences=len(self._lengths),
            num_words=len(self._tokens),
            num_distinct_words=len(words),
        )


class _GrowingIndex(dict[str, int]):
    """Gives every new word the next number (a dict, so that a sentence is looked up at C speed)."""

    def __missing__(self, word: str) -> int:
        self[word] = index = len(self)
        return index


def read_shard(path: Path, entry: ShardEntry) -> Shard:
    """Read a shard file.

    Raises:
        FormatError: if it is not what its entry says.
    """
    entry.check(path)
    return _decode_shard(path.read_bytes(), path=path)


def _decode_shard(data: bytes, *, path: Path) -> Shard:
    if data[: len(_MAGIC)] != _MAGIC:
        raise FormatError(
            f"{path}: expected the bytes {_MAGIC!r} first, found {data[: len(_MAGIC)]!r}. {MENDING}"
        )
    counts = np.frombuffer(data, dtype="<u8", count=4, offset=len(_MAGIC)).tolist()
    num_types, num_blob_bytes, num_sentences, num_words = counts
    blob_start = _HEADER_BYTES + 4 * num_types
    lengths_start = blob_start + num_blob_bytes
    ends = np.cumsum(
        np.frombuffer(data, dtype="<u4", count=num_types, offset=_HEADER_BYTES), dtype=np.int64
    )
    bounds = itertools.pairwise([blob_start, *(ends + blob_start).tolist()])
    words = [str(data[start:end], "utf-8", "surrogatepass") for start, end in bounds]
    lengths = np.frombuffer(data, dtype="<u4", count=num_sentences, offset=lengths_start)
    offsets = np.zeros(num_sentences + 1, dtype=np.int64)
    np.cumsum(lengths, dtype=np.int64, out=offsets[1:])
    tokens = np.frombuffer(
        data, dtype="<u4", count=num_words, offset=lengths_start + 4 * num_sentences
    )
    return Shard(words=words, tokens=tokens.astype(np.uint32), offsets=offsets)
