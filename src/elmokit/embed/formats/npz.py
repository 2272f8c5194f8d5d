"""NumPy archive: an array per sentence, named by its index, its words, and the metadata.

The words are a text ``tokens/INDEX``: a JSON list.
"""

import json
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from elmokit.embed.formats.rows import (
    READ_ADVICE,
    TOKENS_KEY,
    ArrayReader,
    Row,
    Sentence,
    closed_at_end,
    tokens_from_json,
)
from elmokit.files.arrays import open_archive
from elmokit.weights.card import METADATA_KEY

_WORDS = f"{TOKENS_KEY}/"


def write(
    path: Path, blocks: Iterable[Sequence[Row]], metadata: Mapping[str, Any], *, num_bytes: int
) -> None:
    """Keep about 600 bytes per sentence in memory: for at most some 100,000 sentences."""
    with closed_at_end(zipfile.ZipFile(path, "w", zipfile.ZIP_STORED, allowZip64=True)) as file:
        _add(file, METADATA_KEY, np.array(json.dumps(metadata)))
        for row in chain.from_iterable(blocks):
            _add(file, str(row.line_number), row.vectors)
            if (tokens := row.tokens_json()) is not None:
                _add(file, f"{_WORDS}{row.line_number}", np.array(tokens.decode()))


def _add(file: zipfile.ZipFile, name: str, array: np.ndarray) -> None:
    # With a fixed date, the same vectors give the same file.
    entry = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
    with file.open(entry, "w", force_zip64=True) as part:
        np.lib.format.write_array(part, array, allow_pickle=False)


class Reader(ArrayReader):
    def __init__(self, path: Path) -> None:
        with ExitStack() as stack:
            self._file = stack.enter_context(open_archive(path, advice=READ_ADVICE))
            names = [name for name in self._file if not name.startswith(_WORDS)]
            super().__init__(names, self._is_vectors)
            self._opened = stack.pop_all()

    def sentence(self, name: str) -> Sentence:
        words = _WORDS + name
        tokens = tokens_from_json(self._file[words].item()) if words in self._file else None
        return tokens, self._file[name]

    def _is_vectors(self, name: str) -> bool:
        return self._file[name].dtype.kind == "f"


def read_metadata(path: Path) -> str:
    with open_archive(path, advice="") as file:
        return str(file[METADATA_KEY].item())
