"""Tokenized sentences on disk, in shards of about a million words, verified when opened.

A shard directory contains ``shard-00000.bin``, ``shard-00001.bin``, ... (see `shard_file`) and
``manifest.json``, which is written last: a directory without it is unfinished.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from elmokit.config import known_part, parse_record
from elmokit.corpus.shard_file import MENDING, Shard, ShardBuilder, ShardEntry, read_shard
from elmokit.errors import FormatError, InputError
from elmokit.files.atomic import StrPath
from elmokit.files.hashing import text_sha256
from elmokit.files.json_files import read_json, write_json
from elmokit.text.normalization import Normalization
from elmokit.text.tokenizers.registry import TokenizerConfig

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

    @property
    def tokenizer(self) -> TokenizerConfig | None:
        stored = self.metadata.get("tokenizer")
        return None if stored is None else TokenizerConfig(**known_part(TokenizerConfig, stored))

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
        entry = self.entries[index]
        return read_shard(self.shard_dir / entry.file, entry)

    def sentences(self) -> Iterator[list[str]]:
        for index in range(len(self)):
            yield from self.load(index).sentences()


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
    manifest = {
        "format": _FORMAT,
        "version": _VERSION,
        "num_sentences": shards.num_sentences,
        "num_words": shards.num_words,
        "num_empty_sentences": num_empty,
        "metadata": shards.metadata,
        "shards": [vars(entry) for entry in entries],
    }
    write_json(directory / MANIFEST_NAME, manifest)
    return shards


@dataclass(frozen=True, kw_only=True)
class _Manifest:
    format: str
    version: int
    num_sentences: int
    num_words: int
    num_empty_sentences: int
    metadata: dict[str, Any]
    shards: tuple[ShardEntry, ...]


@dataclass(frozen=True, kw_only=True)
class _KnownMetadata:
    """The keys of the metadata that are read again."""

    tokenizer: TokenizerConfig | None = None
    normalization: Normalization | None = None
    num_held_out: int | None = None
    settings: dict[str, Any] | None = None
    sources: tuple[dict[str, Any], ...] = ()


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
    manifest = parse_record(_Manifest, data, source=path, advice=MENDING)
    shards = ShardSet(directory, manifest.shards, manifest.metadata, manifest.num_empty_sentences)
    known = known_part(_KnownMetadata, manifest.metadata)
    parse_record(_KnownMetadata, known, source=f"{path}: metadata", advice=MENDING)
    counts = (manifest.num_sentences, manifest.num_words)
    if not shards.entries or counts != (shards.num_sentences, shards.num_words):
        raise FormatError(f"{path}: its shards have other counts than it states. {MENDING}")
    return shards
