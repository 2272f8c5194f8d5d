"""A frozen biLM's layers of a data set, computed once by an `Embedder` and kept on disk.

They are in half precision and memory-mapped. Above `LIMIT_BYTES` the entries whose last use is
longest ago are removed.
"""

import hashlib
import json
import logging
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from elmokit.embed.embedder import Embedder
from elmokit.embed.streaming import StatePolicy
from elmokit.errors import FormatError, InputError
from elmokit.files.atomic import atomic_directory, reserve
from elmokit.files.sources import damage
from elmokit.files.temporary import cache_dir, cache_entries, remove_entry

log = logging.getLogger(__name__)

Sentence = tuple[str, ...]  # words
OnLayers = Callable[[int, int], None]  # called with the number of sentences done and in total
_VALUES, _STARTS = "layers.npy", "starts.npy"
LIMIT_BYTES = 10**10
"""The most that a layer cache holds."""
ENTRY_PATTERN = "[0-9a-f]{24}"
_ADVICE = "Remove that directory to compute its layers again."


class SentenceLayers:
    """All layers of some sentences, memory-mapped. Indexing gives (W, L, 2D), float16."""

    def __init__(self, directory: Path) -> None:
        with damage(directory, _ADVICE):
            self._values = np.load(directory / _VALUES, mmap_mode="r")  # (words, L, 2D)
            self._starts = np.load(directory / _STARTS)

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __getitem__(self, index: int) -> np.ndarray:
        return self._values[self._starts[index] : self._starts[index + 1]]


def keep_layers(
    embedder: Embedder,
    sentences: Sequence[Sentence],
    directory: Path | None = None,
    *,
    state: StatePolicy = "reset",
    on_progress: OnLayers | None = None,
) -> SentenceLayers:
    """Return the layers of these sentences, computing them if they are not kept yet.

    The key covers everything that decides them: `Embedder.metadata` (model hash, precision,
    processor, state policy, version) and the words, in order. Several processes may ask for the
    same at once. ``directory`` is the cache, by default the user's.
    """
    directory = cache_dir("layers") if directory is None else directory
    if directory.exists() and not directory.is_dir():
        raise InputError(f"The layer cache {directory} is a file: give a directory.")
    words = hashlib.sha256(b"".join(json.dumps(each).encode() for each in sentences)).hexdigest()
    metadata = {"format": 1, "embedder": embedder.metadata(state=state), "sentences": words}
    key = hashlib.sha256(json.dumps(metadata, sort_keys=True).encode()).hexdigest()[:24]
    entry = directory / key
    if is_new := not entry.exists():
        _write(embedder, sentences, entry, state, on_progress)
    with suppress(OSError):  # the entry of another user, or on a read-only file system
        os.utime(entry)
    try:
        layers = SentenceLayers(entry)
    except (FormatError, OSError) as error:
        if entry.exists():
            if isinstance(error, FileNotFoundError | NotADirectoryError):
                raise FormatError(f"{entry} is damaged: {error}. {_ADVICE}") from error
            raise
        # another process has just removed it to make room
        return keep_layers(embedder, sentences, directory, state=state, on_progress=on_progress)
    if is_new:
        _shrink(entry)
    return layers


def _write(
    embedder: Embedder,
    sentences: Sequence[Sentence],
    entry: Path,
    state: StatePolicy,
    on_progress: OnLayers | None,
) -> None:
    starts = np.cumsum([0, *map(len, sentences)], dtype=np.int64)
    shape = (int(starts[-1]), embedder.num_layers, embedder.dim)
    log.info(
        "computing the layers of %d sentences (%d words, %.0f MB), once: %s",
        len(sentences), shape[0], 2 * np.prod(shape, dtype=float) / 1e6, entry,
    )  # fmt: skip
    with atomic_directory(entry, keep=entry.exists) as temp_path:  # others may write it too
        np.save(temp_path / _STARTS, starts)
        values = np.lib.format.open_memmap(
            temp_path / _VALUES, mode="w+", dtype=np.float16, shape=shape
        )
        # On a full disk, writing to a mapped file would kill the process, not raise an error.
        reserve(temp_path / _VALUES, values.offset + values.nbytes)
        stream = embedder.embed_stream((list(words) for words in sentences), state=state)
        for index, vectors in enumerate(stream):
            values[starts[index] : starts[index + 1]] = vectors.transpose(1, 0, 2)
            if on_progress is not None:
                on_progress(index + 1, len(sentences))
        values.flush()


def _shrink(newest: Path) -> None:
    """Remove the oldest entries of a cache until the rest fits; the newest stays in any case."""
    entries = cache_entries(newest.parent, ENTRY_PATTERN)  # oldest use first
    total = sum(entry.num_bytes for entry in entries)
    for entry in entries:
        if total > LIMIT_BYTES and entry.path != newest:
            remove_entry(entry)
            log.info("%s is removed to make room", entry.path)
            total -= entry.num_bytes
