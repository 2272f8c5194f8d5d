"""HDF5 files from anywhere, opened so that they can neither lead elsewhere nor run away.

The HDF5 library follows links and data into other files, and believes sizes that a damaged file
states. Here objects are found by name, through hard links only; numbers must lie in the file
itself and be as large as it says; and everything the library raises becomes `FormatError`.
"""

import math
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import h5py
import h5py.h5l
import h5py.h5o
import numpy as np

from elmokit.files.bounded import most_bytes
from elmokit.files.damage import damage

_ADVICE = "If it is damaged or incomplete, fetch or write it again."
MAX_OBJECTS, MAX_GROUP_DEPTH = 10_000, 16
"""Of a file whose contents are listed."""
_MAX_NAMES = 8
"""Of one object: what is stored once may be read so many times."""
_FILTERS = {h5py.h5z.FILTER_DEFLATE, h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_FLETCHER32, 32000}
"""32000: LZF. Others need plug-ins."""
_MIN_LINK_BYTES = 8
"""A link in a group takes more."""


class Hdf5File:
    """An open file; see `open_hdf5`. All methods raise `FormatError` for a damaged file."""

    def __init__(self, file: h5py.File, path: Path) -> None:
        self._file, self.path = file, path

    @property
    def num_bytes(self) -> int:
        """Size of the file."""
        return self.path.stat().st_size

    def __contains__(self, name: str) -> bool:
        with damage(self.path, _ADVICE, what=f"`{name}`"):
            return self._find(name) is not None

    def dataset(self, name: str) -> h5py.Dataset | None:
        """Return a dataset, whose data are in this file; None if there is none of this name."""
        with damage(self.path, _ADVICE, what=f"dataset `{name}`"):
            place = self._find(name)
            if not isinstance(place, h5py.Dataset):
                return None
            _check_storage(place)
            return place

    def read(self, dataset: h5py.Dataset) -> np.ndarray:
        """Read a dataset that `dataset` returned."""
        name = str(dataset.name).strip("/")
        with damage(self.path, _ADVICE, what=f"dataset `{name}` of shape {dataset.shape}"):
            if dataset.dtype.hasobject:  # the library would allocate whatever lengths are stated
                raise ValueError("it must hold numbers")
            return dataset[...]

    def text(self, name: str) -> str | None:
        """Return a dataset of one text of variable length; None if there is none of this name."""
        dataset = self.dataset(name)
        if dataset is None:
            return None
        with damage(self.path, _ADVICE, what=f"dataset `{name}`"):
            if dataset.size != 1 or h5py.check_string_dtype(dataset.dtype) is None:
                raise ValueError("it must be one text")
            return cast(Any, dataset.asstr()[...]).item()

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return name and shape of every dataset, hard links only."""
        with damage(self.path, _ADVICE, what="the list of its datasets"):
            shapes: dict[str, tuple[int, ...]] = {}
            groups: list[tuple[str, h5py.Group, int]] = [("", self._file, 0)]
            num_links = 0
            while groups:
                prefix, group, depth = groups.pop()
                names = _names(group, MAX_OBJECTS - num_links)
                num_links += len(names)
                if num_links > MAX_OBJECTS or depth > MAX_GROUP_DEPTH:
                    raise ValueError(
                        f"more than {MAX_OBJECTS:,} objects, or groups nested more than "
                        f"{MAX_GROUP_DEPTH} deep"
                    )
                for name in names:
                    place = _follow(group, name)
                    if isinstance(place, h5py.Group):
                        groups.append((f"{prefix}{name}/", place, depth + 1))
                    elif isinstance(place, h5py.Dataset):
                        shapes[prefix + name] = tuple(place.shape or ())
            return shapes

    def names(self) -> list[str]:
        """Return the names in the root, of any number that the file has room for."""
        with damage(self.path, _ADVICE, what="the list of its datasets"):
            possible = self.num_bytes // _MIN_LINK_BYTES
            names = _names(self._file, possible)
            if len(names) > possible:
                raise ValueError("more names than the file has room for")
            return names

    def bytes_attribute(self, dataset: h5py.Dataset, name: str) -> bytes | None:
        """Return a text of fixed length that is an attribute; None if none of this name is one."""
        with damage(
            self.path,
            _ADVICE,
            what=f"attribute `{name}` of dataset `{str(dataset.name).strip('/')}`",
        ):
            if not h5py.h5a.exists(dataset.id, name.encode()):
                return None
            attribute = h5py.h5a.open(dataset.id, name.encode())
            kind = attribute.get_type()
            is_text = isinstance(kind, h5py.h5t.TypeStringID) and not kind.is_variable_str()
            if not is_text or attribute.shape != ():
                return None
            return bytes(cast(Any, dataset.attrs[name]))

    def text_attribute(self, name: str) -> str | None:
        """Return a text that is an attribute of the root; None if there is none of this name."""
        with damage(self.path, _ADVICE, what=f"attribute `{name}`"):
            if not h5py.h5a.exists(self._file.id, name.encode()):
                return None
            attribute = h5py.h5a.open(self._file.id, name.encode())
            kind, count = attribute.get_type(), attribute.get_space().get_simple_extent_npoints()
            if not isinstance(kind, h5py.h5t.TypeStringID) or count != 1:
                raise ValueError("it must be one text")
            text: Any = self._file.attrs[name]
            return text if isinstance(text, str) else bytes(text).decode()

    def _find(self, name: str) -> h5py.Group | h5py.Dataset | None:
        """Follow a name part by part."""
        place: Any = self._file
        for part in name.split("/"):
            if not isinstance(place, h5py.Group) or not place.id.links.exists(part.encode()):
                return None
            place = _follow(place, part)
        return place


def _follow(group: h5py.Group, name: str) -> Any:
    if group.id.links.get_info(name.encode()).type != h5py.h5l.TYPE_HARD:
        raise ValueError(
            f"`{name}` is a link to another place or file, which is not followed. Copy the data: "
            "h5repack or h5py's `copy(..., expand_external=True, expand_soft=True)`"
        )
    return group[name]


def _check_storage(dataset: h5py.Dataset) -> None:
    """Refuse data in other files, unknown compression, and more than the file can hold."""
    layout = dataset.id.get_create_plist()
    if layout.get_external_count() or layout.get_layout() == h5py.h5d.VIRTUAL:
        raise ValueError("its data are in another file. Copy them into one, as with h5repack")
    filters = {layout.get_filter(k)[0] for k in range(layout.get_nfilters())}
    if filters - _FILTERS:
        raise ValueError(
            f"compressed by filter {min(filters - _FILTERS)}, which is not known here. Write it "
            "without compression, or with gzip or LZF"
        )
    stored, stated = dataset.id.get_storage_size(), dataset.nbytes
    possible = stored
    if layout.get_layout() == h5py.h5d.CHUNKED:  # the library makes whole chunks
        possible = most_bytes(stored)
        stated = max(stated, math.prod(layout.get_chunk()) * dataset.dtype.itemsize)
    if stated > possible:
        raise ValueError(
            f"shape {dataset.shape} takes {stated:,} bytes in memory, {stored:,} in the file"
        )


def _names(group: h5py.Group, most: int) -> list[str]:
    """Return the names in a group; after one more than ``most``, the rest is left out."""
    # what is stored once under many names would be read that often; other links count as new
    addresses: dict[bytes, int] = {}

    def add(name: bytes, link: Any) -> bool | None:
        addresses[name] = link.u if link.type == h5py.h5l.TYPE_HARD else -len(addresses)
        return len(addresses) > most or None  # anything but None stops

    group.id.links.iterate(add, info=True)
    address, count = Counter(addresses.values()).most_common(1)[0] if addresses else (0, 0)
    if count > _MAX_NAMES:
        name = next(name for name in addresses if addresses[name] == address)
        raise ValueError(
            f"{count:,} names, such as {name[:40].decode(errors='replace')!r}, mean the same data"
        )
    return [name.decode("utf-8", "surrogateescape") for name in addresses]


@contextmanager
def open_hdf5(path: Path, *, expected: str = "") -> Iterator[Hdf5File]:
    """Open a file for reading; ``expected``, a sentence, is added if it is no whole HDF5 file."""
    path.open("rb").close()  # system errors name the path here, but not in h5py
    with damage(path, f"{expected} {_ADVICE}".strip(), what="not a whole HDF5 file"):
        # without HDF5's own locks, which not all file systems have
        file = h5py.File(path, "r", locking=False)
    with file:
        yield Hdf5File(file, path)
