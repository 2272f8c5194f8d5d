"""A frozen biLM's layers of a data set, computed once by an `Embedder` and kept on disk.

Kept in half precision and memory-mapped: a few kilobytes per word. Above `size_limit` the entries
whose last use is longest ago are removed.
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
from elmokit.files.cache_dir import CacheEntry, cache_dir, cache_entries, remove_entry

log = logging.getLogger(__name__)

Sentence = tuple[str, ...]
"""Words."""
_VALUES, _STARTS, _METADATA = "layers.npy", "starts.npy", "metadata.json"
_FORMAT = 1
LIMIT_VARIABLE = "ELMOKIT_LAYER_CACHE_GB"
"""Environment variable: the most that a layer cache holds."""
DEFAULT_LIMIT_GB = 10
ENTRY_PATTERN = "[0-9a-f]{24}"


class SentenceLayers:
    """All layers of some sentences, memory-mapped. Indexing gives (W, L, 2D), float16.

    ``rows`` are the numbers of these sentences among those kept in ``directory``; none: all.
    """

    def __init__(self, directory: Path, rows: Sequence[int] | None = None) -> None:
        try:
            self._values = np.load(directory / _VALUES, mmap_mode="r")  # (words, L, 2D)
            self._starts = np.load(directory / _STARTS)
        except (OSError, ValueError, EOFError) as error:
            raise FormatError(
                f"The layers kept in {directory} are damaged: {error}. Remove that directory to "
                "compute them again."
            ) from error
        self._rows = range(len(self._starts) - 1) if rows is None else rows

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> np.ndarray:
        row = self._rows[index]
        return self._values[self._starts[row] : self._starts[row + 1]]

    @property
    def num_layers(self) -> int:
        """L, the token layer included."""
        return self._values.shape[1]

    @property
    def dim(self) -> int:
        """2D."""
        return self._values.shape[2]


def size_limit() -> int:
    """Return the bytes that a layer cache may hold; raise `InputError` if the setting is wrong."""
    text = os.environ.get(LIMIT_VARIABLE, str(DEFAULT_LIMIT_GB))
    try:
        limit = float(text)
        if not 0 <= limit < float("inf"):
            raise ValueError(text)
    except ValueError:
        raise InputError(
            f"{LIMIT_VARIABLE} must be a number of gigabytes, such as 10 or 0.5, got {text!r}."
        ) from None
    return int(limit * 1e9)


def kept_layers(directory: Path | None = None) -> list[CacheEntry]:
    """Return the entries of a layer cache (none: the default one), oldest use first."""
    return cache_entries(directory or cache_dir("layers"), ENTRY_PATTERN)


def keep_layers(
    embedder: Embedder,
    sentences: Sequence[Sentence],
    directory: Path | None = None,
    *,
    state: StatePolicy = "reset",
    within: Sequence[Sentence] = (),
    on_progress: Callable[[int, int], None] | None = None,
) -> SentenceLayers:
    """Return the layers of these sentences, computing them if they are not kept yet.

    The key covers everything that decides them: `Embedder.metadata` (model hash, precision,
    processor, state policy, version) and the words. Several processes may ask for the same at once.

    Args:
        embedder: The frozen biLM.
        sentences: Their words; the order matters for the key.
        directory: Where layers are kept; none: the user's cache.
        state: As in `Embedder.embed`.
        within: More sentences, distinct, these among them: if the layers of all are kept already,
            nothing is computed.
        on_progress: Called with the number of sentences done and in total.

    Raises:
        OSError: if the disk is full.
    """
    made: dict[str, object] = {"format": _FORMAT, "embedder": embedder.metadata(state=state)}
    if within:
        entry = _entry(made | {"sentences": _hash(within)}, directory)
        numbers = {words: number for number, words in enumerate(within)}
        rows = [numbers[words] for words in sentences]
        if (layers := _kept(entry, rows)) is not None:
            return layers
    metadata = made | {"sentences": _hash(sentences)}
    entry = _entry(metadata, directory)
    if (layers := _kept(entry)) is not None:
        return layers
    limit = size_limit()
    while layers is None:
        _write(embedder, sentences, entry, metadata, state, on_progress)
        layers = _kept(entry)
    _shrink(entry, limit)
    return layers


def _kept(entry: Path, rows: Sequence[int] | None = None) -> SentenceLayers | None:
    """Return the layers of an entry, if there is one: another process may remove it meanwhile."""
    if not entry.exists():
        return None
    _note_use(entry)
    try:
        return SentenceLayers(entry, rows)
    except FormatError:
        if entry.exists():
            raise
        return None


def _note_use(entry: Path) -> None:
    with suppress(OSError):  # of others, on a read-only file system, or just removed
        os.utime(entry)


def _shrink(newest: Path, limit: int) -> None:
    """Remove the oldest entries of a cache until the rest fits; the newest stays in any case."""
    entries = kept_layers(newest.parent)
    total, removed = sum(entry.num_bytes for entry in entries), []
    for entry in entries:
        if total > limit and entry.path != newest:
            remove_entry(entry)
            removed.append(entry.num_bytes)
            total -= entry.num_bytes
    if removed:
        log.info(
            "%d older entries (%.0f MB) of the layer cache are removed: %s allows it %g GB",
            len(removed), sum(removed) / 1e6, LIMIT_VARIABLE, limit / 1e9,
        )  # fmt: skip


def _entry(metadata: dict[str, object], directory: Path | None) -> Path:
    key = hashlib.sha256(json.dumps(metadata, sort_keys=True).encode()).hexdigest()[:24]
    return (directory or cache_dir("layers")) / key


def _write(
    embedder: Embedder,
    sentences: Sequence[Sentence],
    directory: Path,
    metadata: dict[str, object],
    state: StatePolicy,
    on_progress: Callable[[int, int], None] | None,
) -> None:
    starts = np.concatenate([[0], np.cumsum([len(words) for words in sentences], dtype=np.int64)])
    shape = (int(starts[-1]), embedder.num_layers, embedder.dim)
    log.info(
        "computing the layers of %d sentences (%d words, %.0f MB), once: %s",
        len(sentences), shape[0], 2 * np.prod(shape, dtype=float) / 1e6, directory,
    )  # fmt: skip
    with atomic_directory(directory, keep=directory.exists) as temp_path:  # others may write it too
        np.save(temp_path / _STARTS, starts)
        values = np.lib.format.open_memmap(
            temp_path / _VALUES, mode="w+", dtype=np.float16, shape=shape
        )
        # on a full disk, writing to a mapped file would kill the process instead of raising
        reserve(temp_path / _VALUES, values.offset + values.nbytes)
        stream = embedder.embed_stream((list(words) for words in sentences), state=state)
        for index, vectors in enumerate(stream):
            values[starts[index] : starts[index + 1]] = vectors.transpose(1, 0, 2)
            if on_progress is not None:
                on_progress(index + 1, len(sentences))
        values.flush()
        (temp_path / _METADATA).write_text(json.dumps(metadata, indent=1), encoding="utf-8")


def _hash(sentences: Sequence[Sentence]) -> str:
    digest = hashlib.sha256()
    for words in sentences:
        digest.update(json.dumps(words).encode())
    return digest.hexdigest()
