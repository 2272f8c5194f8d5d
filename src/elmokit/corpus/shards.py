"""Tokenized sentences on disk, in shards of about a million words, verified when opened.

A shard directory holds ``shard-00000.bin``, ``shard-00001.bin``, ... and ``manifest.json``. Every
file is written aside and renamed, the manifest last: a directory without it is unfinished. A shard
stands by itself: its distinct words (length-prefixed UTF-8, so that a word may hold any code point,
white space included) and its sentences as indices into them.

Layout of a shard file, little-endian, without gaps:

    8 bytes   ``ELMOKSH1``
    4 x u64   distinct words N, bytes of all distinct words, sentences S, words n
    u32 (N,)  bytes of each distinct word     u8   their UTF-8 (lone surrogates passed through)
    u32 (S,)  words of each sentence          u32 (n,)  indices into the distinct words
"""

import hashlib
import itertools
import json
import os
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from elmokit.errors import FormatError

MANIFEST_NAME = "manifest.json"
_FORMAT = "elmokit-shards"
_VERSION = 1
_MAGIC = b"ELMOKSH1"
_HEADER_BYTES = len(_MAGIC) + 4 * 8
_MENDING = "Delete the directory and write the shards again from the text."


@dataclass(frozen=True)
class Shard:
    """A loaded shard: sentence ``s`` is ``words[t] for t in tokens[offsets[s]:offsets[s + 1]]``."""

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


@dataclass(frozen=True)
class ShardEntry:
    """What the manifest says of one shard file."""

    file: str
    num_bytes: int
    sha256: str
    num_sentences: int
    num_words: int
    num_distinct_words: int


@dataclass(frozen=True)
class ShardSet:
    """A finished shard directory. Make one with `write_shards` or `ShardSet.open`."""

    shard_dir: Path
    entries: tuple[ShardEntry, ...]
    metadata: Mapping[str, Any]
    """What the writer wanted to keep: tokenizer, normalization, source files, ..."""
    num_empty_sentences: int
    """Empty sentences that were left out when the shards were written."""

    @classmethod
    def open(
        cls, shard_dir: str | os.PathLike[str], *, verify: Literal["sha256", "size"] = "sha256"
    ) -> "ShardSet":
        """Open a shard directory and verify it.

        Args:
            shard_dir: a directory written by `write_shards`.
            verify: ``"sha256"`` reads every file once; ``"size"`` looks at sizes only (each shard
                is still checked in full when it is loaded).

        Raises:
            FileNotFoundError: if there is no finished shard set.
            FormatError: if the manifest or a shard is damaged; names the file, what was expected
                and what was found.
        """
        shards = _read_manifest(Path(shard_dir))
        for entry in shards.entries:
            _check_size(shards.shard_dir / entry.file, entry)
        if verify == "sha256":
            with ThreadPoolExecutor(max_workers=min(4, os.cpu_count() or 1)) as pool:
                paths = [shards.shard_dir / entry.file for entry in shards.entries]
                for path, entry, digest in zip(
                    paths, shards.entries, pool.map(_file_sha256, paths), strict=True
                ):
                    _check_sha256(path, entry, digest)
        return shards

    def __len__(self) -> int:
        """Return the number of shards."""
        return len(self.entries)

    @cached_property
    def num_sentences(self) -> int:
        """Sentences of all shards."""
        return sum(entry.num_sentences for entry in self.entries)

    @cached_property
    def num_words(self) -> int:
        """Words of all shards."""
        return sum(entry.num_words for entry in self.entries)

    @property
    def num_targets(self) -> int:
        """Predictions of one direction in one pass: every word and one end marker a sentence."""
        return self.num_words + self.num_sentences

    @cached_property
    def fingerprint(self) -> str:
        """A hash of all shards and their order: the same sentences in the same shards."""
        joined = "\n".join(entry.sha256 for entry in self.entries)
        return hashlib.sha256(joined.encode("ascii")).hexdigest()

    def load(self, index: int) -> Shard:
        """Read one shard into memory.

        Raises:
            FormatError: if the file is no longer what the manifest says.
        """
        entry = self.entries[index]
        path = self.shard_dir / entry.file
        _check_size(path, entry)
        data = path.read_bytes()
        _check_sha256(path, entry, hashlib.sha256(data).hexdigest())
        return _decode_shard(data, path=path)

    def sentences(self) -> Iterator[list[str]]:
        """Yield every sentence in the order it was written, one shard in memory at a time."""
        for index in range(len(self)):
            yield from self.load(index).sentences()


def write_shards(
    sentences: Iterable[Sequence[str]],
    shard_dir: str | os.PathLike[str],
    *,
    tokens_per_shard: int = 1_000_000,
    metadata: Mapping[str, Any] | None = None,
    on_sentence: Callable[[Sequence[str]], object] | None = None,
) -> ShardSet:
    """Write tokenized sentences as a shard directory; one shard is in memory at a time.

    Args:
        sentences: lists of words; read once. Empty ones are skipped and counted.
        shard_dir: made if absent. What an interrupted earlier call left there is replaced.
        tokens_per_shard: a shard is closed once it holds this many words.
        metadata: JSON-able facts to keep in the manifest. It is read when the manifest is written,
            after the last sentence, so that counts of a reader may be among them.
        on_sentence: called with every sentence that is written, in order; count the vocabulary in
            the same pass with ``on_sentence=counter.add``.

    Returns:
        The finished set.

    Raises:
        ValueError: if there is no sentence with a word.
        TypeError: if ``metadata`` is not JSON-able.
        FileExistsError: if the directory holds a finished set already.
    """
    if tokens_per_shard < 1:
        raise ValueError(f"`tokens_per_shard` must be at least 1, got {tokens_per_shard}.")
    json.dumps(metadata)  # refuse now what the manifest could not hold after hours of work
    directory = Path(shard_dir)
    directory.mkdir(parents=True, exist_ok=True)
    if (directory / MANIFEST_NAME).exists():
        raise FileExistsError(
            f"{directory} holds a finished shard set already. Open it with ShardSet.open, delete "
            f"it, or write to another directory."
        )
    _remove_leftovers(directory)
    entries = []
    builder = _ShardBuilder()
    num_empty = 0
    for sentence in sentences:
        if not sentence:
            num_empty += 1
            continue
        builder.add(sentence)
        if on_sentence is not None:
            on_sentence(sentence)
        if builder.num_words >= tokens_per_shard:
            entries.append(builder.write(directory, index=len(entries)))
            builder = _ShardBuilder()
    if builder.num_words:
        entries.append(builder.write(directory, index=len(entries)))
    if not entries:
        raise ValueError(
            f"the corpus has no sentence with a word ({num_empty} empty sentences were skipped), "
            f"so there is nothing to write to {directory}. Check the input files."
        )
    shards = ShardSet(directory, tuple(entries), dict(metadata or {}), num_empty)
    _write_manifest(shards)
    return shards


class _ShardBuilder:
    """Collects the sentences of one shard."""

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
        _write_whole(directory / name, parts)
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


def _write_whole(path: Path, parts: Iterable[bytes]) -> None:
    """Write a file aside, then give it its name; nothing is left behind on failure."""
    aside = path.with_name(f".{path.name}.partial")
    try:
        with aside.open("wb") as file:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


def _remove_leftovers(directory: Path) -> None:
    """Remove shards (whole and partial) of a set that was never finished."""
    for path in directory.iterdir():
        if re.fullmatch(r"shard-\d{5,}\.bin|\.(shard-\d+\.bin|manifest\.json)\.partial", path.name):
            path.unlink()


def _write_manifest(shards: ShardSet) -> None:
    manifest = {
        "format": _FORMAT,
        "version": _VERSION,
        "num_sentences": shards.num_sentences,
        "num_words": shards.num_words,
        "num_empty_sentences": shards.num_empty_sentences,
        "metadata": shards.metadata,
        "shards": [vars(entry) for entry in shards.entries],
    }
    text = json.dumps(manifest, ensure_ascii=True, indent=1) + "\n"
    _write_whole(shards.shard_dir / MANIFEST_NAME, [text.encode("ascii")])


def _read_manifest(directory: Path) -> ShardSet:
    path = directory / MANIFEST_NAME
    if not path.is_file():
        raise FileNotFoundError(
            f"{directory} is not a finished shard set: it has no {MANIFEST_NAME}, which is written "
            f"last. Write the shards again from the text."
        )
    try:
        manifest = json.loads(path.read_bytes())
        if (manifest["format"], manifest["version"]) != (_FORMAT, _VERSION):
            raise FormatError(
                f"{path}: expected format {_FORMAT!r} version {_VERSION}, found "
                f"{manifest['format']!r} version {manifest['version']!r}. {_MENDING}"
            )
        shards = ShardSet(
            shard_dir=directory,
            entries=tuple(ShardEntry(**entry) for entry in manifest["shards"]),
            metadata=manifest["metadata"],
            num_empty_sentences=manifest["num_empty_sentences"],
        )
        expected = (manifest["num_sentences"], manifest["num_words"])
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"{path}: damaged manifest ({error!r}). {_MENDING}") from error
    found = (shards.num_sentences, shards.num_words)
    if found != expected:
        raise FormatError(
            f"{path}: expected {expected[0]} sentences and {expected[1]} words in all shards, "
            f"found {found[0]} and {found[1]}. {_MENDING}"
        )
    return shards


def _file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _check_size(path: Path, entry: ShardEntry) -> None:
    if not path.is_file():
        raise FormatError(
            f"{path}: the shard is missing (expected {entry.num_bytes} bytes). {_MENDING}"
        )
    found = path.stat().st_size
    if found != entry.num_bytes:
        raise FormatError(
            f"{path}: damaged shard: expected {entry.num_bytes} bytes, found {found}. {_MENDING}"
        )


def _check_sha256(path: Path, entry: ShardEntry, digest: str) -> None:
    if digest != entry.sha256:
        raise FormatError(
            f"{path}: damaged shard: expected sha256 {entry.sha256}, found {digest}. {_MENDING}"
        )


def _decode_shard(data: bytes, *, path: Path) -> Shard:
    if data[: len(_MAGIC)] != _MAGIC:
        raise FormatError(
            f"{path}: expected the bytes {_MAGIC!r} first, found {data[: len(_MAGIC)]!r}. "
            f"{_MENDING}"
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
