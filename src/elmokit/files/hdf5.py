"""HDF5 files from anywhere, opened so that they can neither lead elsewhere nor run away.

The HDF5 library follows links and data into other files, and believes sizes that a damaged file
states. Here objects are found by name, through hard links only; stored data must lie in the file
itself and be as large as it says, texts included; and everything the library raises becomes
`FormatError`. Every reader of HDF5 uses this module.
"""

import math
import re
import struct
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, cast

import h5py
import h5py.h5l
import h5py.h5o
import numpy as np

from elmokit.files.lines import most_bytes
from elmokit.files.sources import damage

MAX_OBJECTS, MAX_GROUP_DEPTH = 10_000, 16
"""Of a file whose contents are listed."""
_MAX_NAMES = 8
"""Of one object: what is stored once may be read so many times."""
_FILTERS = {h5py.h5z.FILTER_DEFLATE, h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_FLETCHER32, 32000}
"""32000: LZF. Others need plug-ins."""
_ADVICE = "If it is damaged or incomplete, fetch or write it again."
_MAX_TEXT_BYTES = 1 << 26
_MIN_LINK_BYTES = 8
"""A link in a group takes more."""
_ATTRIBUTE_HEADER, _LONGEST_HEADER = struct.Struct("<BBHHH"), 1 << 20
"""Version, flags, and the sizes of name, type and shape, which follow in this order."""
_REFERENCE = struct.Struct("<IQI")
"""Of a text of variable length: bytes, address of its heap, index there."""
_HEAP, _HEAP_MARK, _HEAP_OBJECT = struct.Struct("<8sQ"), b"GCOL", struct.Struct("<H6xQ")
"""Mark and version, and size of a heap with its head; index and size of an object in it."""
_ATTRIBUTE_VERSIONS = ((1, 0, 8), (3, 1, 1))
"""Version, bytes between header and name, and what name, type and shape are padded to."""


class Hdf5File:
    """An open file; see `open_hdf5`. All methods raise `FormatError` for a damaged file."""

    def __init__(self, file: h5py.File, path: Path) -> None:
        self._file, self.path = file, path

    @property
    def num_bytes(self) -> int:
        """Size of the file."""
        return self.path.stat().st_size

    def __contains__(self, name: str) -> bool:
        with self._damage(f"`{name}`"):
            return self._find(name) is not None

    def dataset(self, name: str) -> h5py.Dataset | None:
        """Return a dataset, whose data are in this file; None if there is none of this name."""
        with self._damage(f"dataset `{name}`"):
            place = self._find(name)
            if not isinstance(place, h5py.Dataset):
                return None
            _check_storage(place)
            return place

    def read(self, dataset: h5py.Dataset) -> np.ndarray:
        """Read a dataset that `dataset` returned."""
        name = str(dataset.name).strip("/")
        with self._damage(f"dataset `{name}` of shape {dataset.shape}"):
            if dataset.dtype.hasobject:  # the library would allocate whatever lengths are stated
                raise ValueError("it must hold numbers")
            return dataset[...]

    def text(self, name: str) -> str | None:
        """Return a dataset of one text of variable length; None if there is none of this name."""
        dataset = self.dataset(name)
        if dataset is None:
            return None
        with self._damage(f"dataset `{name}`"):
            kind, start = h5py.check_string_dtype(dataset.dtype), dataset.id.get_offset()
            if dataset.size != 1 or kind is None or kind.length is not None or start is None:
                raise ValueError("it must be one text, not in chunks")
            with self.path.open("rb") as file:
                file.seek(start)
                reference = file.read(_REFERENCE.size)
            self._check_length(self._check_reference(reference), longest=self.num_bytes)
            return cast(Any, dataset.asstr()[...]).item()

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return name and shape of every dataset, hard links only."""
        with self._damage("the list of its datasets"):
            shapes: dict[str, tuple[int, ...]] = {}
            groups: list[tuple[str, h5py.Group, int]] = [("", self._file, 0)]
            num_links = 0
            while groups:
                prefix, group, depth = groups.pop()
                if depth > MAX_GROUP_DEPTH:
                    raise ValueError(f"groups nested more than {MAX_GROUP_DEPTH} deep")
                names = _names(group, MAX_OBJECTS - num_links)
                num_links += len(names)
                for name in names:
                    place = _follow(group, name)
                    if isinstance(place, h5py.Group):
                        groups.append((f"{prefix}{name}/", place, depth + 1))
                    elif isinstance(place, h5py.Dataset):
                        shapes[prefix + name] = tuple(place.shape or ())
            return shapes

    def names(self) -> list[str]:
        """Return the names in the root, of any number that the file has room for."""
        with self._damage("the list of its datasets"):
            return _names(self._file, self.num_bytes // _MIN_LINK_BYTES)

    def bytes_attribute(self, dataset: h5py.Dataset, name: str) -> bytes | None:
        """Return a text of fixed length that is an attribute; None if none of this name is one."""
        with self._damage(f"attribute `{name}` of dataset `{str(dataset.name).strip('/')}`"):
            if not h5py.h5a.exists(dataset.id, name.encode()):
                return None
            attribute = h5py.h5a.open(dataset.id, name.encode())
            kind = attribute.get_type()
            is_text = isinstance(kind, h5py.h5t.TypeStringID) and not kind.is_variable_str()
            if not is_text or attribute.shape != ():
                return None
            self._check_length(kind.get_size())
            return bytes(cast(Any, dataset.attrs[name]))

    def text_attribute(self, name: str) -> str | None:
        """Return a text that is an attribute of the root; None if there is none of this name."""
        with self._damage(f"attribute `{name}`"):
            if not h5py.h5a.exists(self._file.id, name.encode()):
                return None
            attribute = h5py.h5a.open(self._file.id, name.encode())
            kind, count = attribute.get_type(), attribute.get_space().get_simple_extent_npoints()
            if not isinstance(kind, h5py.h5t.TypeStringID) or count != 1:
                raise ValueError("it must be one text")
            is_variable = kind.is_variable_str()
            self._check_length(self._stated_length(name) if is_variable else kind.get_size())
            text: Any = self._file.attrs[name]
            return text if isinstance(text, str) else bytes(text).decode()

    def _check_length(self, length: int, *, longest: int = _MAX_TEXT_BYTES) -> None:
        if length > min(longest, self.num_bytes):
            raise ValueError(f"it states {length:,} bytes of text")

    def _find(self, name: str) -> h5py.Group | h5py.Dataset | None:
        """Follow a name part by part."""
        place: Any = self._file
        for part in name.split("/"):
            if not isinstance(place, h5py.Group) or not place.id.links.exists(part.encode()):
                return None
            place = _follow(place, part)
        return place

    def _damage(self, what: str) -> AbstractContextManager[None]:
        return damage(self.path, _ADVICE, what=what)

    def _stated_length(self, name: str) -> int:
        """Return the bytes that a text attribute of variable length says it has.

        The library would allocate them before it looks at the text, so they are read from the
        header of the root. Of several places that look like the attribute, such as in the values
        of others, the longest counts.

        Source: HDF5 file format specification, attribute message (versions 1 and 3).
        """
        mark, lengths = name.encode() + b"\0", [-1]
        with self.path.open("rb") as file:
            file.seek(h5py.h5o.get_info(self._file.id).addr)
            header = file.read(_LONGEST_HEADER)
        for match in re.finditer(re.escape(mark), header):
            for version, gap, padding in _ATTRIBUTE_VERSIONS:
                start = match.start() - gap - _ATTRIBUTE_HEADER.size
                if start < 0 or header[start] != version:
                    continue
                sizes = _ATTRIBUTE_HEADER.unpack_from(header, start)[2:]
                if sizes[0] == len(mark):
                    at = match.start() + sum(size + -size % padding for size in sizes)
                    lengths.append(self._check_reference(header[at : at + _REFERENCE.size]))
        if lengths == [-1]:
            raise ValueError("it is not stored as elmokit writes it")
        return max(lengths)

    def _check_reference(self, reference: bytes) -> int:
        """Check the heap that holds a text of variable length; return the length that is stated.

        The library reads every object of that heap, and never ends if one states no size.

        Source: HDF5 file format specification, global heap.
        """
        sizes = self._file.id.get_create_plist().get_sizes()
        if len(reference) < _REFERENCE.size or tuple(sizes) != (8, 8):
            raise ValueError("it is not stored as HDF5 stores texts")
        length, address, _ = _REFERENCE.unpack(reference)
        with self.path.open("rb") as file:
            file.seek(min(address, self.num_bytes))
            head = file.read(_HEAP.size).ljust(_HEAP.size, b"\0")
            size = _HEAP.unpack(head)[1]
            heap = file.read(min(size, self.num_bytes)) if head.startswith(_HEAP_MARK) else b""
        at = 0
        while at + _HEAP_OBJECT.size <= min(len(heap), size - _HEAP.size):
            index, num_bytes = _HEAP_OBJECT.unpack_from(heap, at)
            step = num_bytes if index == 0 else _HEAP_OBJECT.size + num_bytes + -num_bytes % 8
            if step < _HEAP_OBJECT.size:
                raise ValueError("its heap has no end")
            at += step
        return length


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
    """Return the names in a group, at most so many."""
    # what is stored once under many names would be read that often; other links count as new
    addresses: dict[bytes, int] = {}

    def add(name: bytes, link: Any) -> bool | None:
        addresses[name] = link.u if link.type == h5py.h5l.TYPE_HARD else -len(addresses)
        return len(addresses) > most or None  # anything but None stops

    group.id.links.iterate(add, info=True)
    if len(addresses) > most:
        raise ValueError("more objects than are read, or than the file has room for")
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
        try:  # without HDF5's own locks, which not all file systems have
            file = h5py.File(path, "r", locking=False)
        except OSError as error:  # HDF5 opens a file twice in one process only in the same way
            if "file locking flag" not in str(error):
                raise
            file = h5py.File(path, "r")
    with file:
        yield Hdf5File(file, path)
