"""HDF5: a dataset per sentence, named by its index; metadata in an attribute of the root.

The words of a sentence are an attribute ``tokens`` of its dataset, where programs for the original
layouts do not look: a JSON list in UTF-8. A list of more than `MAX_ATTRIBUTE_BYTES`, the most that
HDF5 stores in one attribute, continues in ``tokens1``, ``tokens2`` and so on.
"""

import json
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from elmokit.embed.formats.block import (
    LINES_KEY,
    TOKENS_KEY,
    ArrayReader,
    Block,
    Sentence,
    check_key,
    tokens_from_json,
)
from elmokit.errors import FormatError
from elmokit.files.atomic import reserve
from elmokit.files.hdf5 import open_hdf5
from elmokit.weights.card import METADATA_KEY

MAX_ATTRIBUTE_BYTES = 60_000
TEXTS_KEY = "sentence_to_index"
"""Of AllenNLP: the lines and the names of their datasets."""


class Writer:
    """Writes datasets without compression, as the original did."""

    def __init__(self, path: Path, metadata: Mapping[str, Any], *, num_bytes: int = 0) -> None:
        reserve(path, num_bytes)  # the library may crash on a full disk
        self.file = h5py.File(path, "w", locking=False)
        # metadata cache: at most 2 MB, not 32; what is flushed when decides the bytes of the file
        cache = self.file.id.get_mdc_config()
        cache.set_initial_size = True
        cache.initial_size, cache.min_size, cache.max_size = 2**20, 2**20, 2**21
        self.file.id.set_mdc_config(cache)
        self.file.attrs[METADATA_KEY] = json.dumps(metadata)
        self._lines: dict[str, int] = {}

    def write(self, block: Block) -> None:
        self._lines |= block.lines_of_keys()
        for key, tokens, vectors in block.rows():
            if block.keys is not None:
                check_key(key, is_path=True)
            dataset = self.file.create_dataset(key, data=vectors)
            # an attribute holds at most 64 kB, so long lists of words have several
            text = tokens or b""
            for start in range(0, len(text), MAX_ATTRIBUTE_BYTES):
                piece = text[start : start + MAX_ATTRIBUTE_BYTES]
                kind = h5py.string_dtype("utf-8", len(piece))
                name = _attribute(start // MAX_ATTRIBUTE_BYTES)
                dataset.attrs.create(name, np.array(piece, dtype=kind))

    def add_text(self, name: str, text: str) -> None:
        dataset = self.file.create_dataset(name, (1,), dtype=h5py.string_dtype("utf-8"))
        dataset[0] = text

    def close(self) -> None:
        if self._lines:
            self.add_text(LINES_KEY, json.dumps(self._lines))
        self.file.close()


class AllenNLPWriter(Writer):
    """Also writes ``sentence_to_index``: JSON from each line to its dataset, as AllenNLP does.

    Keeps all lines in memory until `close`; the last index of a repeated line counts.
    """

    def __init__(self, path: Path, metadata: Mapping[str, Any], *, num_bytes: int = 0) -> None:
        super().__init__(path, metadata, num_bytes=num_bytes)
        self._index_of: dict[str, str] = {}

    def write(self, block: Block) -> None:
        super().write(block)
        for index, text in zip(block.indices, block.texts, strict=True):
            if text is not None:
                self._index_of[text.strip()] = str(index)

    def close(self) -> None:
        self.add_text(TEXTS_KEY, json.dumps(self._index_of))
        super().close()


class Reader(ArrayReader):
    """Reads files of elmokit and other programs; data outside the file are refused."""

    def __init__(self, path: Path) -> None:
        with ExitStack() as stack:
            self._file = stack.enter_context(open_hdf5(path))
            names = [name for name in self._file.names() if name not in (TEXTS_KEY, LINES_KEY)]
            self._find_sentences(names, self._file.text(LINES_KEY), self._is_vectors)
            self.opened = stack.pop_all()

    def sentence(self, name: str) -> Sentence:
        if (dataset := self._file.dataset(name)) is None:
            raise ValueError(f"`{name}` is a group (HDF5 makes groups of names with `/`)")
        return self._tokens(dataset), self._file.read(dataset)

    def texts(self) -> dict[int, str]:
        """Return the lines of an AllenNLP file by index; of equal lines, the index of the last."""
        index_of = json.loads(self._file.text(TEXTS_KEY) or "{}")
        return {int(index): text for text, index in index_of.items()}

    def _is_vectors(self, name: str) -> bool:
        dataset = self._file.dataset(name)
        return dataset is not None and dataset.dtype.kind == "f"

    def _tokens(self, dataset: h5py.Dataset) -> list[str] | None:
        pieces: list[bytes] = []
        while (piece := self._file.bytes_attribute(dataset, _attribute(len(pieces)))) is not None:
            pieces.append(piece)
        return tokens_from_json(b"".join(pieces)) if pieces else None


def _attribute(number: int) -> str:
    return TOKENS_KEY if number == 0 else f"{TOKENS_KEY}{number}"


def read_metadata(path: Path) -> str:
    with open_hdf5(path) as file:
        text = file.text_attribute(METADATA_KEY)
    if text is None:
        raise FormatError(f"{path}: no attribute `{METADATA_KEY}`.")
    return text
