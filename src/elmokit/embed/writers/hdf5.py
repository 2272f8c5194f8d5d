"""HDF5: a dataset per sentence, named by its index; metadata in an attribute of the root."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py

from elmokit.embed.writers.block import METADATA_KEY, Block
from elmokit.errors import FormatError
from elmokit.files.atomic import reserve
from elmokit.files.hdf5 import open_hdf5


class Writer:
    """Writes datasets without compression, as the original did."""

    def __init__(self, path: Path, metadata: Mapping[str, Any], *, num_bytes: int = 0) -> None:
        reserve(path, num_bytes)  # the library may crash on a full disk
        self.file = h5py.File(path, "w")
        cache = self.file.id.get_mdc_config()  # metadata cache: at most 2 MB, not 32
        cache.set_initial_size = True
        cache.initial_size, cache.min_size, cache.max_size = 2**20, 2**20, 2**21
        self.file.id.set_mdc_config(cache)
        self.file.attrs[METADATA_KEY] = json.dumps(metadata)

    def write(self, block: Block) -> None:
        """Append sentences."""
        for index, vectors in zip(block.indices, block.vectors, strict=True):
            self.file.create_dataset(str(index), data=vectors)

    def close(self) -> None:
        """Finish the file."""
        self.file.close()


def read_metadata(path: Path) -> str:
    """Return the metadata as JSON."""
    with open_hdf5(path) as file:
        text = file.text_attribute(METADATA_KEY)
    if text is None:
        raise FormatError(f"{path}: no attribute `{METADATA_KEY}`.")
    return text
