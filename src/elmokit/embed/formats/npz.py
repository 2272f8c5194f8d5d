"""NumPy archive: an array per sentence, named by its index, its words, and the metadata.

The words are a text ``tokens/INDEX``: a JSON list.
"""

import json
import zipfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from elmokit.embed.formats.block import (
    LINES_KEY,
    READ_ADVICE,
    TOKENS_KEY,
    ArrayReader,
    Block,
    Sentence,
    check_key,
    tokens_from_json,
)
from elmokit.files.arrays import open_archive
from elmokit.weights.card import METADATA_KEY


class Writer:
    """Keeps about 600 bytes per sentence in memory: for at most some 100,000 sentences."""

    def __init__(self, path: Path, metadata: Mapping[str, Any], *, num_bytes: int = 0) -> None:
        self._file = zipfile.ZipFile(path, "w", zipfile.ZIP_STORED, allowZip64=True)
        self._add(METADATA_KEY, np.array(json.dumps(metadata)))
        self._lines: dict[str, int] = {}

    def write(self, block: Block) -> None:
        self._lines |= block.lines_of_keys()
        for key, tokens, vectors in block.rows():
            if block.keys is not None:
                check_key(key, is_path=False)
            self._add(key, vectors)
            if tokens is not None:
                self._add(_tokens_name(key), np.array(tokens.decode()))

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
            words = _tokens_name("")
            others = (METADATA_KEY, LINES_KEY)
            arrays = [n for n in self._file if n not in others and not n.startswith(words)]
            is_ours = LINES_KEY in self._file and METADATA_KEY in self._file
            lines = self._file[LINES_KEY].item() if is_ours else None
            self._find_sentences(arrays, lines, self._is_vectors)
            self.opened = stack.pop_all()

    def sentence(self, name: str) -> Sentence:
        words = _tokens_name(name)
        tokens = tokens_from_json(self._file[words].item()) if words in self._file else None
        return tokens, self._file[name]

    def _is_vectors(self, name: str) -> bool:
        return self._file[name].dtype.kind == "f"


def _tokens_name(name: int | str) -> str:
    return f"{TOKENS_KEY}/{name}"


def read_metadata(path: Path) -> str:
    with open_archive(path, advice="") as file:
        return str(file[METADATA_KEY].item())
