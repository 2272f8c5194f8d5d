"""A frozen biLM's layers of a data set, computed once by an `Embedder` and kept on disk.

They are in half precision and memory-mapped. Above `size_limit` the entries whose last use is
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
from elmokit.files.temporary import (
    cache_dir,
    cache_entries,
    make_directory,
    remove_entry,
    scratch_directory,
    temporary_directory,
)

log = logging.getLogger(__name__)

Sentence = tuple[str, ...]  # words
OnLayers = Callable[[int, int], None]  # called with the number of sentences done and in total
_VALUES, _STARTS, _METADATA = "layers.npy", "starts.npy", "metadata.json"
LIMIT_VARIABLE = "ELMOKIT_LAYER_CACHE_GB"
"""Environment variable: the most that a layer cache holds."""
DEFAULT_LIMIT_GB = 10
ENTRY_PATTERN = "[0-9a-f]{24}"


class SentenceLayers:
    """All layers of some sentences, memory-mapped. Indexing gives (W, L, 2D), float16."""

    def __init__(self, directory: Path) -> None:
        with damage(directory, "Remove that directory to compute its layers again."):
            self._values = np.load(directory / _VALUES, mmap_mode="r")  # (words, L, 2D)
            self._starts = np.load(directory / _STARTS)

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __getitem__(self, index: int) -> np.ndarray:
        return self._values[self._starts[index] : self._starts[index + 1]]


def size_limit() -> int:
    """Return the bytes that a layer cache may hold; raise `InputError` if the setting is wrong."""
    text = os.environ.get(LIMIT_VARIABLE, str(DEFAULT_LIMIT_GB))
    with suppress(ValueError, OverflowError):
        limit = int(float(text) * 1e9)
        if limit >= 0:
            return limit
    raise InputError(
        f"{LIMIT_VARIABLE} must be a number of gigabytes, such as 10 or 0.5, got {text!r}."
    )


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
    same at once. ``directory`` is the cache, by default the user's, or where nothing can be written
    there, a temporary one of this process.
    """
    if directory is None:
        try:
            directory = cache_dir("layers")
            make_directory(directory)
            with temporary_directory(directory, "trial"):
                pass
        except OSError as error:
            log.warning(
                "nothing can be written to the layer cache (%s): these layers are not kept. Set "
                "XDG_CACHE_HOME to a directory of your own.", error,
            )  # fmt: skip
            with scratch_directory("elmokit-layers") as scratch:
                return keep_layers(
                    embedder, sentences, scratch, state=state, on_progress=on_progress
                )
    words = hashlib.sha256(b"".join(json.dumps(each).encode() for each in sentences)).hexdigest()
    metadata = {"format": 1, "embedder": embedder.metadata(state=state), "sentences": words}
    key = hashlib.sha256(json.dumps(metadata, sort_keys=True).encode()).hexdigest()[:24]
    entry, limit = directory / key, size_limit()
    while True:
        if is_new := not entry.exists():
            _write(embedder, sentences, entry, metadata, state, on_progress)
        with suppress(OSError):  # the entry of another user, or on a read-only file system
            os.utime(entry)
        try:
            layers = SentenceLayers(entry)
            break
        except (FormatError, OSError):
            # unless another process has just removed the entry to make room, it is damaged
            if entry.exists():
                raise
    if is_new:
        _shrink(entry, limit)
    return layers


def _write(
    embedder: Embedder,
    sentences: Sequence[Sentence],
    entry: Path,
    metadata: dict[str, object],
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
        (temp_path / _METADATA).write_text(json.dumps(metadata, indent=1), encoding="utf-8")


def _shrink(newest: Path, limit: int) -> None:
    """Remove the oldest entries of a cache until the rest fits; the newest stays in any case."""
    entries = cache_entries(newest.parent, ENTRY_PATTERN)  # oldest use first
    total = sum(entry.num_bytes for entry in entries)
    for entry in entries:
        if total > limit and entry.path != newest:
            remove_entry(entry)
            log.info("%s is removed: %s is %g GB", entry.path, LIMIT_VARIABLE, limit / 1e9)
            total -= entry.num_bytes
