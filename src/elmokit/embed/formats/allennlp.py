"""HDF5 as AllenNLP writes it: with ``sentence_to_index``, JSON from each line to its dataset."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from elmokit.embed.formats import hdf5
from elmokit.embed.formats.block import Block
from elmokit.embed.formats.hdf5 import Reader, read_metadata

__all__ = ["Reader", "Writer", "read_metadata"]


class Writer(hdf5.Writer):
    """Keeps all lines in memory until `close`; the last index of a repeated line counts."""

    def __init__(self, path: Path, metadata: Mapping[str, Any], *, num_bytes: int = 0) -> None:
        super().__init__(path, metadata, num_bytes=num_bytes)
        self._index_of: dict[str, str] = {}

    def write(self, block: Block) -> None:
        """Append sentences."""
        super().write(block)
        for index, text in zip(block.indices, block.texts, strict=True):
            if text is not None:
                self._index_of[text.strip()] = str(index)

    def close(self) -> None:
        """Write the index of the lines and finish the file."""
        self.add_text(hdf5.TEXTS_KEY, json.dumps(self._index_of))
        super().close()
