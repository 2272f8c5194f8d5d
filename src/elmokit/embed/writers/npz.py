"""NumPy archive: an array per sentence, named by its index, and the metadata."""

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from elmokit.embed.writers.block import METADATA_KEY, Block
from elmokit.files.arrays import open_archive


class Writer:
    """Keeps about 300 bytes per sentence in memory: for at most some 100,000 sentences."""

    def __init__(self, path: Path, metadata: Mapping[str, Any], *, num_bytes: int = 0) -> None:
        self._file = zipfile.ZipFile(path, "w", zipfile.ZIP_STORED, allowZip64=True)
        self._add(METADATA_KEY, np.array(json.dumps(metadata)))

    def write(self, block: Block) -> None:
        """Append sentences."""
        for index, vectors in zip(block.indices, block.vectors, strict=True):
            self._add(str(index), vectors)

    def close(self) -> None:
        """Finish the file."""
        self._file.close()

    def _add(self, name: str, array: np.ndarray) -> None:
        # With a fixed date, the same vectors give the same file.
        entry = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
        with self._file.open(entry, "w", force_zip64=True) as file:
            np.lib.format.write_array(file, array, allow_pickle=False)


def read_metadata(path: Path) -> str:
    """Return the metadata as JSON."""
    with open_archive(path, advice="") as file:
        return str(file[METADATA_KEY].item())
