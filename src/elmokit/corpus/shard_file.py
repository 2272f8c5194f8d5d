"""One shard file: distinct words, and sentences as indices into them.

Words are length-prefixed UTF-8, so that they may contain any code point. Little-endian, no gaps:

    8 bytes   ``ELMOKSH1``
    4 x u64   distinct words N, bytes of all distinct words, sentences S, words n
    u32 (N,)  bytes of each distinct word     u8   their UTF-8 (lone surrogates kept)
    u32 (S,)  words of each sentence          u32 (n,)  indices into the distinct words
"""

import hashlib
import itertools
import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from elmokit.field_checks import check_ranges
from elmokit.files.atomic import atomic_file
from elmokit.files.damage import damage
from elmokit.files.hashing import check_file

MENDING = "Copy the shards again, or start anew from the text, in another directory."
_MAGIC = b"ELMOKSH1"
_HEADER_BYTES = len(_MAGIC) + 4 * 8


@dataclass(frozen=True)
class Shard:
    """A loaded shard: sentence ``s`` is ``words[t] for t in tokens[offsets[s]:offsets[s + 1]]``."""

    words: list[str]
    tokens: np.ndarray
    """uint32 (n,): the words of all sentences, as indices into ``words``."""
    offsets: np.ndarray
    """int64 (num_sentences + 1,): the beginning of each sentence in ``tokens``."""

    @property
    def num_sentences(self) -> int:
        return len(self.offsets) - 1

    @property
    def num_words(self) -> int:
        return len(self.tokens)

    def sentence(self, index: int) -> list[str]:
        tokens = self.tokens[self.offsets[index] : self.offsets[index + 1]]
        return [self.words[token] for token in tokens.tolist()]

    def sentences(self) -> Iterator[list[str]]:
        return (self.sentence(index) for index in range(self.num_sentences))


def merge_shards(shards: Sequence[Shard]) -> Shard:
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
    file: str
    num_bytes: int
    sha256: str
    num_sentences: int
    num_words: int
    num_distinct_words: int

    def __post_init__(self) -> None:
        if not re.fullmatch(r"shard-\d{5,12}\.bin", self.file):
            raise ValueError(f"`file` must be shard-NNNNN.bin in the directory, got {self.file!r}")
        counts = ("num_bytes", "num_sentences", "num_words", "num_distinct_words")
        check_ranges(self, **dict.fromkeys(counts, (0, 2**62)))

    def check(self, path: Path) -> None:
        check_file(path, num_bytes=self.num_bytes, sha256=self.sha256, advice=MENDING)


class ShardBuilder:
    def __init__(self) -> None:
        self._index_of_word = _GrowingIndex()
        self._tokens = array("I")
        self._lengths = array("I")

    @property
    def num_words(self) -> int:
        return len(self._tokens)

    def add(self, sentence: Sequence[str]) -> None:
        self._tokens.extend(map(self._index_of_word.__getitem__, sentence))
        self._lengths.append(len(sentence))

    def write(self, directory: Path, *, index: int) -> ShardEntry:
        """Write the shard atomically as number ``index`` of a directory."""
        words = [word.encode("utf-8", "surrogatepass") for word in self._index_of_word]
        blob = b"".join(words)
        counts = [len(words), len(blob), len(self._lengths), len(self._tokens)]
        numbers = [
            np.asarray(values, dtype="<u4").tobytes()
            for values in (list(map(len, words)), self._lengths, self._tokens)
        ]
        header = _MAGIC + np.array(counts, dtype="<u8").tobytes()
        content = b"".join((header, numbers[0], blob, *numbers[1:]))
        name = f"shard-{index:05d}.bin"
        with atomic_file(directory / name) as temp_path:
            temp_path.write_bytes(content)
        return ShardEntry(
            file=name,
            num_bytes=len(content),
            sha256=hashlib.sha256(content).hexdigest(),
            num_sentences=len(self._lengths),
            num_words=len(self._tokens),
            num_distinct_words=len(words),
        )


class _GrowingIndex(dict[str, int]):
    def __missing__(self, word: str) -> int:
        self[word] = index = len(self)
        return index


def read_shard(path: Path, entry: ShardEntry) -> Shard:
    entry.check(path)
    return _decode_shard(path.read_bytes(), path=path)


def _decode_shard(content: bytes, *, path: Path) -> Shard:
    with damage(path, MENDING):
        if content[: len(_MAGIC)] != _MAGIC:
            raise ValueError(f"must begin with {_MAGIC!r}, found {content[: len(_MAGIC)]!r}")
        counts = np.frombuffer(content, dtype="<u8", count=4, offset=len(_MAGIC)).tolist()
        num_types, num_blob_bytes, num_sentences, num_words = counts
        blob_start = _HEADER_BYTES + 4 * num_types
        lengths_start = blob_start + num_blob_bytes
        tokens_start = lengths_start + 4 * num_sentences
        # before anything of a stated size is made
        if tokens_start + 4 * num_words != len(content):
            raise ValueError("the header states another size")

        def numbers(start: int, count: int) -> np.ndarray:
            return np.frombuffer(content, dtype="<u4", count=count, offset=start)

        ends = blob_start + np.cumsum(numbers(_HEADER_BYTES, num_types), dtype=np.int64)
        bounds = itertools.pairwise([blob_start, *ends.tolist()])
        words = [str(content[start:end], "utf-8", "surrogatepass") for start, end in bounds]
        offsets = np.zeros(num_sentences + 1, dtype=np.int64)
        np.cumsum(numbers(lengths_start, num_sentences), dtype=np.int64, out=offsets[1:])
        tokens = numbers(tokens_start, num_words).astype(np.uint32)
        blob_end = int(ends[-1]) if num_types else blob_start
        if (blob_end, offsets[-1]) != (lengths_start, num_words):
            raise ValueError("words, sentences and sizes disagree")
        if tokens.max(initial=0) >= max(1, num_types):
            raise ValueError("an index is that of no word")
    return Shard(words=words, tokens=tokens, offsets=offsets)
