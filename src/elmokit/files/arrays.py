"""NumPy archives (.npz), read with no array allocated before its size is checked."""

import math
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from elmokit.files.lines import most_bytes
from elmokit.files.sources import damage

_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


class Archive:
    """An open archive, see `open_archive`; indexing reads one array."""

    def __init__(self, file: zipfile.ZipFile, path: Path, advice: str) -> None:
        self._file, self._path, self._advice = file, path, advice

    def __iter__(self) -> Iterator[str]:
        return (name.removesuffix(".npy") for name in self._file.NameToInfo)

    def __contains__(self, name: str) -> bool:
        return f"{name}.npy" in self._file.NameToInfo

    def __getitem__(self, name: str) -> np.ndarray:
        with damage(self._path, self._advice, what=f"damaged: array `{name}`"):
            entry = self._file.getinfo(f"{name}.npy")
            if entry.file_size > most_bytes(entry.compress_size):
                raise ValueError(f"{entry.file_size:,} bytes from {entry.compress_size:,}")
            with self._file.open(entry) as file:
                return _read_array(file, entry.file_size)


@contextmanager
def open_archive(path: Path, *, advice: str) -> Iterator[Archive]:
    """Open an archive; ``advice`` ends error messages."""
    with path.open("rb") as raw:
        with damage(path, advice):
            file = zipfile.ZipFile(raw)
            if sum(entry.compress_size for entry in file.infolist()) > path.stat().st_size:
                raise ValueError("its members overlap")
        with file:
            yield Archive(file, path, advice)


def _read_array(file: Any, num_bytes: int) -> np.ndarray:
    shape, is_fortran, dtype = _HEADERS[np.lib.format.read_magic(file)](file)
    num_left = num_bytes - file.tell()
    is_possible = min(shape, default=0) >= 0 and math.prod(shape) * dtype.itemsize == num_left
    if dtype.hasobject or not is_possible:
        raise ValueError(f"{dtype} of shape {shape} in {num_left:,} bytes")
    flat = np.frombuffer(bytearray(file.read()), dtype=dtype, count=math.prod(shape))
    return flat.reshape(shape, order="F" if is_fortran else "C")
