"""HDF5: a dataset per sentence, named by its index; metadata in an attribute of the root.

The words of a sentence are an attribute ``tokens`` of its dataset, where programs for the original
layouts do not look: a JSON list in UTF-8. A list of more than `MAX_ATTRIBUTE_BYTES`, the most that
HDF5 stores in one attribute, continues in ``tokens1``, ``tokens2`` and so on.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from elmokit.embed.formats.rows import (
    TOKENS_KEY,
    ArrayReader,
    Row,
    Sentence,
    closed_at_end,
    tokens_from_json,
)
from elmokit.errors import FormatError
from elmokit.files.atomic import reserve
from elmokit.files.hdf5 import open_hdf5
from elmokit.weights.card import METADATA_KEY

MAX_ATTRIBUTE_BYTES = 60_000
TEXTS_KEY = "sentence_to_index"
"""Of AllenNLP: JSON from each line to the name of its dataset, in memory until the end."""


def write(
    path: Path, blocks: Iterable[Sequence[Row]], metadata: Mapping[str, Any], *, num_bytes: int
) -> None:
    """Write datasets without compression, as the original did."""
    reserve(path, num_bytes)  # the library may crash on a full disk
    with closed_at_end(h5py.File(path, "w", locking=False)) as file:
        # metadata cache: at most 2 MB, not 32; what is flushed when decides the bytes of the file
        cache = file.id.get_mdc_config()
        cache.set_initial_size = True
        cache.initial_size, cache.min_size, cache.max_size = 2**20, 2**20, 2**21
        file.id.set_mdc_config(cache)
        file.attrs[METADATA_KEY] = json.dumps(metadata)
        index_of: dict[str, str] = {}
        for row in chain.from_iterable(blocks):
            key = str(row.line_number)
            if metadata["format"] == "allennlp" and row.text is not None:
                index_of[row.text.strip()] = key  # the last of equal lines counts
            dataset = file.create_dataset(key, data=row.vectors)
            # an attribute holds at most 64 kB, so long lists of words have several
            text = row.tokens_json() or b""
            for start in range(0, len(text), MAX_ATTRIBUTE_BYTES):
                piece = text[start : start + MAX_ATTRIBUTE_BYTES]
                kind = h5py.string_dtype("utf-8", len(piece))
                name = _attribute(start // MAX_ATTRIBUTE_BYTES)
                dataset.attrs.create(name, np.array(piece, dtype=kind))
        if metadata["format"] == "allennlp":
            dataset = file.create_dataset(TEXTS_KEY, (1,), dtype=h5py.string_dtype("utf-8"))
            dataset[0] = json.dumps(index_of)


class Reader(ArrayReader):
    """Reads files of elmokit and other programs; data outside the file are refused."""

    def __init__(self, path: Path) -> None:
        with ExitStack() as stack:
            self._file = stack.enter_context(open_hdf5(path))
            super().__init__(self._file.names(), self._is_vectors)
            self._opened = stack.pop_all()

    def sentence(self, name: str) -> Sentence:
        if (dataset := self._file.dataset(name)) is None:
            raise ValueError(f"`{name}` is a group (HDF5 makes groups of names with `/`)")
        pieces: list[bytes] = []
        while (piece := self._file.bytes_attribute(dataset, _attribute(len(pieces)))) is not None:
            pieces.append(piece)
        tokens = tokens_from_json(b"".join(pieces)) if pieces else None
        return tokens, self._file.read(dataset)

    def texts(self) -> dict[int, str]:
        """Return the lines of an AllenNLP file by index; of equal lines, the index of the last."""
        index_of = json.loads(self._file.text(TEXTS_KEY) or "{}")
        return {int(index): text for text, index in index_of.items()}

    def _is_vectors(self, name: str) -> bool:
        dataset = self._file.dataset(name)
        return dataset is not None and dataset.dtype.kind == "f"


def _attribute(number: int) -> str:
    return TOKENS_KEY if number == 0 else f"{TOKENS_KEY}{number}"


def read_metadata(path: Path) -> str:
    with open_hdf5(path) as file:
        text = file.text_attribute(METADATA_KEY)
    if text is None:
        raise FormatError(f"{path}: no attribute `{METADATA_KEY}`.")
    return text
