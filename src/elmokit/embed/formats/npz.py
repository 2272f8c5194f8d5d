"""NumPy archive: an array per sentence, named by its index, its words, and the metadata.

The words are a text ``tokens/INDEX``: a JSON list.
"""

import json
import math
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from elmokit.embed.formats.block import (
    METADATA_KEY,
    TOKENS_KEY,
    Block,
    Sentence,
    sentence_numbers,
    tokens_from_json,
    tokens_to_json,
)
from elmokit.files.arrays import open_archive

_MAX_COMPRESSION, _SMALL_BYTES = 1032, 1 << 16


class Writer:
    """Keeps about 600 bytes per sentence in memory: for at most some 100,000 sentences."""

    def __init__(self, path: Path, metadata: Mapping[str, Any], *, num_bytes: int = 0) -> None:
        self._file = zipfile.ZipFile(path, "w", zipfile.ZIP_STORED, allowZip64=True)
        self._add(METADATA_KEY, np.array(json.dumps(metadata)))

    def write(self, block: Block) -> None:
        """Append sentences."""
        for index, tokens, vectors in zip(block.indices, block.tokens, block.vectors, strict=True):
            self._add(str(index), vectors)
            if tokens is not None:
                self._add(_tokens_name(index), np.array(tokens_to_json(tokens).decode()))

    def close(self) -> None:
        """Finish the file."""
        self._file.close()

    def _add(self, name: str, array: np.ndarray) -> None:
        # With a fixed date, the same vectors give the same file.
        entry = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
        with self._file.open(entry, "w", force_zip64=True) as file:
            np.lib.format.write_array(file, array, allow_pickle=False)


class Reader:
    """Reads an array at a time."""

    def __init__(self, path: Path) -> None:
        self._file = zipfile.ZipFile(path)
        names = (name.removesuffix(".npy") for name in self._file.namelist())
        self.indices = sentence_numbers(names)

    def read(self, position: int) -> Sentence:
        """Return the sentence at a position among those of the file."""
        index = int(self.indices[position])
        has_tokens = f"{_tokens_name(index)}.npy" in self._file.NameToInfo
        tokens = tokens_from_json(self._array(_tokens_name(index)).item()) if has_tokens else None
        return tokens, self._array(str(index))

    def __iter__(self) -> Iterator[Sentence]:
        return map(self.read, range(len(self.indices)))

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _array(self, name: str) -> np.ndarray:
        entry = self._file.getinfo(f"{name}.npy")
        with self._file.open(entry) as file:
            version = np.lib.format.read_magic(file)
            read_header = getattr(np.lib.format, f"read_array_header_{version[0]}_0")
            shape, _, dtype = read_header(file)
        num_bytes = dtype.itemsize * math.prod(shape)
        possible = min(entry.file_size, entry.compress_size * _MAX_COMPRESSION + _SMALL_BYTES)
        if num_bytes > possible:
            raise ValueError(f"`{name}` states {num_bytes:,} bytes and has {possible:,}")
        with self._file.open(entry) as file:
            return np.lib.format.read_array(file, allow_pickle=False)


def _tokens_name(index: int) -> str:
    return f"{TOKENS_KEY}/{index}"


def read_metadata(path: Path) -> str:
    """Return the metadata as JSON."""
    with open_archive(path, advice="") as file:
        return str(file[METADATA_KEY].item())
