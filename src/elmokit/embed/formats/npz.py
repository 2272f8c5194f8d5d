"""NumPy archive: an array per sentence, named by its index, its words, and the metadata.

The words are a text ``tokens/INDEX``: a JSON list.
"""

import json
import zipfile
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from elmokit.embed.formats.rows import (
    LINES_KEY,
    READ_ADVICE,
    TOKENS_KEY,
    ArrayReader,
    Row,
    Sentence,
    tokens_from_json,
)
from elmokit.files.arrays import open_archive
from elmokit.weights.card import METADATA_KEY

_WORDS = f"{TOKENS_KEY}/"


class Writer:
    """Keeps about 600 bytes per sentence in memory: for at most some 100,000 sentences."""

    def __init__(self, path: Path, metadata: Mapping[str, Any], *, num_bytes: int = 0) -> None:
        self._file = zipfile.ZipFile(path, "w", zipfile.ZIP_STORED, allowZip64=True)
        self._add(METADATA_KEY, np.array(json.dumps(metadata)))
        self._lines: dict[str, int] | None = {} if "keys" in metadata else None

    def write(self, rows: Iterable[Row]) -> None:
        for row in rows:
            if self._lines is not None:
                self._lines[row.key] = row.line_number
            self._add(row.key, row.vectors)
            if (tokens := row.tokens_json()) is not None:
                self._add(_WORDS + row.key, np.array(tokens.decode()))

    def close(self) -> None:
        if self._lines:
            self._add(LINES_KEY, np.array(json.dumps(self._lines)))
        self._file.close()

    def _add(self, name: str, array: np.ndarray) -> None:
        # With a fixed date, the same vectors give the same file.
        entry = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
        with self._file.open(entry, "w", force_zip64=True) as file:
            np.lib.format.write_array(file, array, allow_pickle=False)


class Reader(ArrayReader):
    def __init__(self, path: Path) -> None:
        with ExitStack() as stack:
            self._file = stack.enter_context(open_archive(path, advice=READ_ADVICE))
            others = (METADATA_KEY, LINES_KEY)
            names = [n for n in self._file if n not in others and not n.startswith(_WORDS)]
            has_lines = LINES_KEY in self._file and METADATA_KEY in self._file
            lines = self._file[LINES_KEY].item() if has_lines else None
            super().__init__(names, lines, self._is_vectors)
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
