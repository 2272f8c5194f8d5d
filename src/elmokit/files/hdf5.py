"""HDF5 files from anywhere, opened so that they can neither lead elsewhere nor run away.

The HDF5 library follows links and data into other files, and believes sizes that a damaged file
states. Here objects are found by name, through hard links only; stored data must lie in the file
itself and be as large as it says; and everything the library raises becomes `FormatError`. Every
reader of HDF5 uses this module.
"""

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from elmokit.files.bounded import most_bytes
from elmokit.files.damage import damage

MAX_OBJECTS, MAX_GROUP_DEPTH = 10_000, 16
"""Of a file whose contents are listed."""


class Hdf5File:
    """An open file; see `open_hdf5`. All methods raise `FormatError` for a damaged file."""

    def __init__(self, file: h5py.File, path: Path) -> None:
        self._file, self.path = file, path
        self.num_bytes = path.stat().st_size

    def __contains__(self, name: str) -> bool:
        with _damage(self.path, f"`{name}`"):
            return self._find(name) is not None

    def dataset(self, name: str) -> h5py.Dataset | None:
        """Return a dataset, whose data are in this file; None if there is none of this name."""
        with _damage(self.path, f"dataset `{name}`"):
            place = self._find(name)
            if not isinstance(place, h5py.Dataset):
                return None
            _check_storage(place)
            return place

    def read(self, dataset: h5py.Dataset) -> np.ndarray:
        """Read numbers of a dataset that `dataset` returned."""
        with _damage(self.path, f"dataset `{dataset.name}` of shape {dataset.shape}"):
            if dataset.dtype.hasobject:
                raise ValueError("it must hold numbers")
            return dataset[...]

    def text(self, name: str) -> str | None:
        """Return a dataset of one text; None if there is none of this name."""
        dataset: Any = self.dataset(name)
        if dataset is None:
            return None
        with _damage(self.path, f"dataset `{name}`"):
            if dataset.size != 1 or h5py.check_string_dtype(dataset.dtype) is None:
                raise ValueError("it must be one text")
            return dataset.asstr()[...].item()

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return name and shape of every dataset, hard links only, each object once."""
        shapes: dict[str, tuple[int, ...]] = {}
        num_objects = 0

        def add(name: str, place: Any) -> None:
            nonlocal num_objects
            num_objects += 1
            if num_objects > MAX_OBJECTS or name.count("/") > MAX_GROUP_DEPTH:
                raise ValueError(f"more than {MAX_OBJECTS:,} objects, or {MAX_GROUP_DEPTH} levels")
            if isinstance(place, h5py.Dataset):
                shapes[name] = tuple(place.shape or ())

        with _damage(self.path, "the list of its datasets"):
            self._file.visititems(add)
        return shapes

    def names(self) -> list[str]:
        """Return the names in the root."""
        with _damage(self.path, "the list of its datasets"):
            return list(self._file)

    def bytes_attribute(self, dataset: h5py.Dataset, name: str) -> bytes | None:
        """Return a text of fixed length that is an attribute; None if none of this name is one."""
        with _damage(self.path, f"attribute `{name}` of dataset `{dataset.name}`"):
            if name not in dataset.attrs:
                return None
            stored = dataset.attrs.get_id(name)
            if stored.dtype.kind != "S" or stored.shape != ():
                return None
            self._check_size(stored)
            value: Any = dataset.attrs[name]
            return bytes(value)

    def text_attribute(self, name: str) -> str | None:
        """Return a text that is an attribute of the root; None if there is none of this name."""
        with _damage(self.path, f"attribute `{name}`"):
            if name not in self._file.attrs:
                return None
            stored = self._file.attrs.get_id(name)
            if h5py.check_string_dtype(stored.dtype) is None or stored.shape != ():
                raise ValueError("it must be one text")
            self._check_size(stored)
            text: Any = self._file.attrs[name]
            return text if isinstance(text, str) else bytes(text).decode()

    def _check_size(self, attribute: Any) -> None:
        if attribute.dtype.itemsize > self.num_bytes:
            raise ValueError(f"it states {attribute.dtype.itemsize:,} bytes of text")

    def _find(self, name: str) -> h5py.Group | h5py.Dataset | None:
        """Follow a name part by part."""
        place: Any = self._file
        for part in name.split("/"):
            link = place.get(part, getlink=True) if isinstance(place, h5py.Group) else None
            if link is None:
                return None
            if not isinstance(link, h5py.HardLink):
                raise ValueError(
                    f"`{part}` is a link to another place or file, which is not followed. Copy "
                    "the data: h5repack or h5py's `copy(..., expand_external=True, "
                    "expand_soft=True)`"
                )
            place = place[part]
        return place


def _check_storage(dataset: h5py.Dataset) -> None:
    """Refuse data in other files, and more than the file can hold."""
    if dataset.external or dataset.is_virtual:
        raise ValueError("its data are in another file. Copy them into one, as with h5repack")
    stored, stated = dataset.id.get_storage_size(), dataset.nbytes
    possible = stored
    if dataset.chunks is not None:  # the library makes whole chunks
        possible = most_bytes(stored)
        stated = max(stated, math.prod(dataset.chunks) * dataset.dtype.itemsize)
    if stated > possible:
        raise ValueError(
            f"shape {dataset.shape} takes {stated:,} bytes in memory, {stored:,} in the file"
        )


@contextmanager
def open_hdf5(path: Path, *, expected: str = "") -> Iterator[Hdf5File]:
    """Open a file for reading; ``expected``, a sentence, is added if it is no whole HDF5 file."""
    path.open("rb").close()  # system errors name the path here, but not in h5py
    with _damage(path, "not a whole HDF5 file", expected):
        # without HDF5's own locks, which not all file systems have
        file = h5py.File(path, "r", locking=False)
    with file:
        yield Hdf5File(file, path)


def _damage(path: Path, what: str, expected: str = "") -> AbstractContextManager[None]:
    def advice() -> str:
        told = f"{expected} If it is damaged or incomplete, fetch or write it again.".strip()
        return f"{told} It has {path.stat().st_size:,} bytes."

    return damage(path, advice, what=what)
