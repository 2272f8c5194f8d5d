"""Tokenized sentences on disk, in shards of about a million words, verified when opened.

A shard directory contains ``shard-00000.bin``, ``shard-00001.bin``, ... (see `shard_file`) and
``manifest.json``, which is written last: a directory without it is unfinished.
"""

import hashlib
import itertools
import json
import os
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, get_args

import numpy as np

from elmokit.config import known_part
from elmokit.errors import FormatError, InputError, is_number, shown
from elmokit.files.atomic import StrPath, atomic_file
from elmokit.files.json_files import read_json, write_json
from elmokit.files.sources import check_file, damage, text_sha256
from elmokit.text.normalization import Normalization
from elmokit.text.tokenizers.registry import TokenizerConfig

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

    def counts(self) -> list[int]:
        """Return how often each of ``words`` occurs."""
        return np.bincount(self.tokens, minlength=len(self.words)).tolist()

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
    lengths = np.concatenate([np.diff(shard.offsets) for shard in shards])
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    return Shard(list(ids), np.concatenate(tokens), offsets)


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
        for name in ("num_bytes", "num_sentences", "num_words", "num_distinct_words"):
            if not is_number(getattr(self, name), whole=True) or getattr(self, name) < 0:
                raise ValueError(f"`{name}` must be a count, got {shown(getattr(self, name))}")

    def check(self, path: Path) -> None:
        check_file(path, num_bytes=self.num_bytes, sha256=self.sha256, advice=MENDING)


class _WordNumbers(dict[str, int]):
    # a defaultdict with its own __len__ would be a cycle, which only the garbage collector frees
    def __missing__(self, word: str) -> int:
        self[word] = number = len(self)
        return number


class ShardBuilder:
    def __init__(self) -> None:
        self._index_of_word = _WordNumbers()
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
        word_lengths, lengths, tokens = (
            np.asarray(values, dtype="<u4").tobytes()
            for values in (list(map(len, words)), self._lengths, self._tokens)
        )
        header = _MAGIC + np.array(counts, dtype="<u8").tobytes()
        content = header + word_lengths + blob + lengths + tokens
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


MANIFEST_NAME = "manifest.json"
_FORMAT = "elmokit-shards"
_VERSION = 1


@dataclass(frozen=True)
class ShardSet:
    shard_dir: Path
    entries: tuple[ShardEntry, ...]
    metadata: Mapping[str, Any]
    """Tokenizer, normalization, source files, ..."""
    num_empty_sentences: int

    @classmethod
    def open(cls, shard_dir: StrPath) -> "ShardSet":
        """Open and verify a directory; every file is read once."""
        shards = _read_manifest(Path(shard_dir))
        with ThreadPoolExecutor(max_workers=min(4, os.cpu_count() or 1)) as pool:
            paths = [shards.shard_dir / entry.file for entry in shards.entries]
            list(pool.map(ShardEntry.check, shards.entries, paths))
        return shards

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Shard]:
        return map(self.load, range(len(self)))

    @property
    def tokenizer(self) -> TokenizerConfig | None:
        stored = self.metadata.get("tokenizer")
        return (
            None if stored is None else TokenizerConfig(**known_part(TokenizerConfig, dict(stored)))
        )

    @cached_property
    def num_sentences(self) -> int:
        return sum(entry.num_sentences for entry in self.entries)

    @cached_property
    def num_words(self) -> int:
        return sum(entry.num_words for entry in self.entries)

    @property
    def num_targets(self) -> int:
        """Predictions of one direction in one pass: words and one end marker per sentence."""
        return self.num_words + self.num_sentences

    @cached_property
    def fingerprint(self) -> str:
        return text_sha256("\n".join(entry.sha256 for entry in self.entries))

    def load(self, index: int) -> Shard:
        path = self.shard_dir / self.entries[index].file
        self.entries[index].check(path)
        return _decode_shard(path.read_bytes(), path=path)

    def sentences(self) -> Iterator[list[str]]:
        for shard in self:
            yield from shard.sentences()


def write_shards(
    sentences: Iterable[Sequence[str]],
    shard_dir: StrPath,
    *,
    tokens_per_shard: int = 1_000_000,
    metadata: Mapping[str, Any] | None = None,
) -> ShardSet:
    """Write tokenized sentences as a shard directory; one shard is in memory at a time.

    Empty sentences are skipped and counted. ``metadata`` is read after the last sentence, so that
    it may contain counts made while reading.
    """
    json.dumps(metadata)  # fail now, not after hours of work
    directory = Path(shard_dir)
    directory.mkdir(parents=True, exist_ok=True)
    if (directory / MANIFEST_NAME).exists():
        raise FileExistsError(f"{directory} already has a finished shard set.")
    for path in directory.glob("shard-*.bin"):  # of an interrupted call
        if path.stem.removeprefix("shard-").isdecimal():
            path.unlink()
    entries = []
    builder = ShardBuilder()
    num_empty = 0
    for sentence in sentences:
        if not sentence:
            num_empty += 1
            continue
        builder.add(sentence)
        if builder.num_words >= tokens_per_shard:
            entries.append(builder.write(directory, index=len(entries)))
            builder = ShardBuilder()
    if builder.num_words:
        entries.append(builder.write(directory, index=len(entries)))
    if not entries:
        raise InputError(
            f"the corpus has no sentence with a word ({num_empty} empty sentences were skipped)."
        )
    shards = ShardSet(directory, tuple(entries), dict(metadata or {}), num_empty)
    write_json(directory / MANIFEST_NAME, {
        "format": _FORMAT, "version": _VERSION,
        "num_sentences": shards.num_sentences, "num_words": shards.num_words,
        "num_empty_sentences": num_empty, "metadata": dict(shards.metadata),
        "shards": [asdict(entry) for entry in shards.entries],
    })  # fmt: skip
    return shards


def _read_manifest(directory: Path) -> ShardSet:
    path = directory / MANIFEST_NAME
    if not path.is_file():
        raise FileNotFoundError(
            f"{directory} is not a finished shard set: it has no {MANIFEST_NAME}, which is written "
            "last. Write the shards again from the text."
        )
    data = read_json(path, advice=MENDING)
    if (data.get("format"), data.get("version")) != (_FORMAT, _VERSION):
        raise FormatError(
            f"{path}: not a manifest of {_FORMAT} {_VERSION}, but of {data.get('format')!r} "
            f"version {data.get('version')!r}. If {directory} holds raw text, give its files."
        )
    with damage(path, MENDING):
        entries = tuple(ShardEntry(**entry) for entry in data["shards"])
        shards = ShardSet(directory, entries, data["metadata"], data["num_empty_sentences"])
        _ = shards.tokenizer  # is read again
        if shards.metadata.get("normalization", "NFC") not in get_args(Normalization):
            raise ValueError(f"unknown normalization {shown(shards.metadata['normalization'])}")
        if not isinstance(shards.metadata.get("sources", []), list):
            raise TypeError("`sources` is no list")
        counts = (data["num_sentences"], data["num_words"])
        if not entries or counts != (shards.num_sentences, shards.num_words):
            raise ValueError("its shards have other counts than it states")
    return shards
