"""A frozen biLM's layers of a data set, computed once by an `Embedder` and kept on disk.

Kept in half precision and memory-mapped: a few kilobytes per word.
"""

import hashlib
import json
import logging
import os
import shutil
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from elmokit.embed.embedder import Embedder, StatePolicy
from elmokit.errors import FormatError
from elmokit.files.atomic import atomic_directory, reserve

log = logging.getLogger(__name__)

Sentence = tuple[str, ...]
"""Words."""
_VALUES, _STARTS, _METADATA = "layers.npy", "starts.npy", "metadata.json"
_FORMAT = 1


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


def default_cache_dir() -> Path:
    """Return where layers are kept by default."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "elmokit" / "layers"


def keep_layers(
    embedder: Embedder,
    sentences: Sequence[Sentence],
    cache_dir: Path | None = None,
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
        cache_dir: Where layers are kept; none: `default_cache_dir`.
        state: As in `Embedder.embed`.
        within: More sentences, distinct, these among them: if the layers of all are kept already,
            nothing is computed.
        on_progress: Called with the number of sentences done and in total.

    Raises:
        OSError: if the disk is full.
    """
    made: dict[str, object] = {"format": _FORMAT, "embedder": embedder.metadata(state=state)}
    if within:
        directory = _directory(made | {"sentences": _hash(within)}, cache_dir)
        if directory.exists():
            numbers = {words: number for number, words in enumerate(within)}
            return SentenceLayers(directory, [numbers[words] for words in sentences])
    metadata = made | {"sentences": _hash(sentences)}
    directory = _directory(metadata, cache_dir)
    if not directory.exists():
        _write(embedder, sentences, directory, metadata, state, on_progress)
    return SentenceLayers(directory)


def _directory(metadata: dict[str, object], cache_dir: Path | None) -> Path:
    key = hashlib.sha256(json.dumps(metadata, sort_keys=True).encode()).hexdigest()[:24]
    return (cache_dir or default_cache_dir()) / key


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
    own = directory.with_name(f"{directory.name}-{uuid.uuid4().hex}")  # others may write the same
    with atomic_directory(own) as temp_path:
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
    try:
        own.rename(directory)
    except OSError:
        shutil.rmtree(own)
        if not directory.exists():
            raise


def _hash(sentences: Sequence[Sentence]) -> str:
    digest = hashlib.sha256()
    for words in sentences:
        digest.update(json.dumps(words).encode())
    return digest.hexdigest()
