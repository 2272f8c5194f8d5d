"""Checkpoints of TensorFlow, version 2: ``PREFIX.index`` and ``PREFIX.data-00000-of-00001``.

The index is a table in LevelDB's format, from names to small protocol buffers that say where in the
data files a tensor is; the header is under the empty name. A table is blocks and a footer. A block
holds sorted entries, each of which states how much of its key it shares with the one before; behind
it follow its type and the CRC of both. The footer leads to the block that lists the others.

Source: LevelDB's ``table_format.md``; TensorFlow's ``core/lib/io/format``,
``core/protobuf/tensor_bundle.proto`` and ``core/util/tensor_bundle``.
"""

import itertools
import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from elmokit.errors import FormatError
from elmokit.files.arrays import crc32c
from elmokit.files.lines import read_bounded
from elmokit.files.sources import damage

INDEX_SUFFIX = ".index"
MAX_TENSORS, MAX_SHARDS, MAX_DIMS = 50_000, 10_000, 8
MAX_INDEX_BYTES = 1 << 21
TABLE_MAGIC = bytes.fromhex("57fb808b247547db")
"""The last bytes of a table."""
MAX_KEY_BYTES, MAX_BLOCKS = 1000, 10_000
"""A key is cheap to state, since it shares bytes with the one before, but not to make."""
_FOOTER_BYTES = 48
_CRC_MASK = 0xA282EAD8
_MAX_VARINT_BYTES = 10
_DTYPES = {
    1: "<f4", 2: "<f8", 3: "<i4", 4: "u1", 5: "<i2", 6: "i1", 9: "<i8", 10: "?", 17: "<u2",
    19: "<f2", 22: "<u4", 23: "<u8",
}  # fmt: skip
"""TensorFlow's numbers of types that NumPy has too."""
_OTHER_DTYPE = np.dtype("V1")
"""Stands for texts, bfloat16 and so on, which no weights here are."""


@dataclass(frozen=True)
class BundleEntry:
    name: str
    shape: tuple[int, ...]
    dtype: np.dtype
    shard: int
    offset: int
    num_bytes: int
    crc: int
    is_partitioned: bool


class TensorBundle:
    """The tensors of a checkpoint; nothing is read before it is asked for."""

    def __init__(self, index: Path) -> None:
        self.path = index
        self.prefix = str(index).removesuffix(INDEX_SUFFIX)
        self.entries: dict[str, BundleEntry] = {}
        data = read_bounded(index, MAX_INDEX_BYTES)
        with damage(index, "Fetch it again.", what="no whole index of a TensorFlow checkpoint"):
            rows = read_table(data)
            self.num_shards = _num_shards(*next(rows, (b"?", b"")))
            for name, value in itertools.islice(rows, MAX_TENSORS):
                entry = _entry(name.decode("utf-8", "backslashreplace"), value)
                self.entries[entry.name] = entry

    @property
    def num_bytes(self) -> int:
        return sum(map(self._shard_bytes, range(self.num_shards)))

    def shard_path(self, shard: int) -> Path:
        return Path(f"{self.prefix}.data-{shard:05d}-of-{self.num_shards:05d}")

    def read(self, dataset: BundleEntry) -> np.ndarray:
        entry, count = dataset, math.prod(dataset.shape)
        path = self.shard_path(entry.shard)
        where = f"{path}: tensor `{entry.name}` of shape {entry.shape}"
        is_whole = entry.num_bytes == count * entry.dtype.itemsize and not entry.is_partitioned
        if entry.dtype == _OTHER_DTYPE or not is_whole:
            raise FormatError(f"{where} is damaged, cut into slices, or does not hold numbers.")
        size, end = self._shard_bytes(entry.shard), entry.offset + entry.num_bytes
        if end <= size:  # nothing of a size that is only stated is made
            with path.open("rb") as file:
                file.seek(entry.offset)
                array = np.fromfile(file, dtype=entry.dtype, count=count)
            if crc32c(array) == _unmasked(entry.crc):
                return array.reshape(entry.shape)
        raise FormatError(
            f"{where} should end at byte {end:,} of {size:,} with the checksum of the index: "
            "truncated, damaged, or of another checkpoint."
        )

    def _shard_bytes(self, shard: int) -> int:
        path = self.shard_path(shard)
        if shard >= self.num_shards or not path.exists():
            raise FormatError(f"{path} is missing, which {self.path.name} belongs to: fetch it.")
        return path.stat().st_size


# --- the table


def read_table(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield keys and values in the order of the table; ValueError says where it is damaged."""
    if len(data) < _FOOTER_BYTES or not data.endswith(TABLE_MAGIC):
        raise ValueError("the file does not end as a table does: it is truncated or no table")
    footer = data[-_FOOTER_BYTES:]
    _, at = _varint(footer, 0)
    _, at = _varint(footer, at)
    _block(data, footer)  # of metadata, which is only checked
    end = 0
    for number, (_, handle) in enumerate(_entries(data, footer[at:])):
        start, _ = _varint(handle, 0)
        # a block that is listed many times would be read as often
        if start < end or number >= MAX_BLOCKS:
            raise ValueError(f"more than {MAX_BLOCKS:,} blocks, or one that is listed twice")
        end = start + 1
        yield from _entries(data, handle)


def _unmasked(crc: int) -> int:
    rotated = (crc - _CRC_MASK) & 0xFFFFFFFF
    return (rotated >> 17 | rotated << 15) & 0xFFFFFFFF


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number of variable length and the position behind it."""
    value = 0
    for index, byte in enumerate(data[at : at + _MAX_VARINT_BYTES]):
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return value, at + index + 1
    raise ValueError(f"the number at {at:,} is cut off or too long")


def _block(data: bytes, handle: bytes) -> bytes:
    """Return the block at a handle (offset, size), whose CRC is right."""
    offset, at = _varint(handle, 0)
    size, _ = _varint(handle, at)
    end = offset + size
    kind, crc = struct.unpack_from("<BI", data, end)
    if kind != 0 or crc32c(data[offset : end + 1]) != _unmasked(crc):
        raise ValueError(f"the block at byte {offset:,} is compressed or has another checksum")
    return data[offset:end]


def _entries(data: bytes, handle: bytes) -> Iterator[tuple[bytes, bytes]]:
    block = _block(data, handle)
    # the block ends with the places where keys share nothing, and their number
    limit = len(block) - 4 - 4 * struct.unpack("<I", block[-4:])[0]
    key, at = b"", 0
    while at < limit:
        shared, at = _varint(block, at)
        unshared, at = _varint(block, at)
        length, at = _varint(block, at)
        end = at + unshared + length
        if shared > len(key) or end > limit or shared + unshared > MAX_KEY_BYTES:
            raise ValueError(f"an entry is cut off, or has a key of over {MAX_KEY_BYTES:,} bytes")
        key = key[:shared] + block[at : at + unshared]
        yield key, block[at + unshared : end]
        at = end


# --- the protocol buffers


def _num_shards(name: bytes, header: bytes) -> int:
    """Return the number of data files by the header of the index."""
    fields = dict(_fields(header))
    num_shards, byte_order = fields.get(1, 1), fields.get(2, 0)
    is_usual = name == b"" and byte_order == 0
    if not is_usual or isinstance(num_shards, bytes) or not 1 <= num_shards <= MAX_SHARDS:
        raise ValueError(f"its header {name!r} is not that of version 2, little-endian")
    return num_shards


def _entry(name: str, value: bytes) -> BundleEntry:
    fields: dict[int, Any] = {1: 0, 2: b"", 3: 0, 4: 0, 5: 0, 6: 0}
    fields |= {number: field for number, field in _fields(value) if number not in fields or
               type(field) is type(fields[number])}  # fmt: skip
    shape = []
    for number, dim in _fields(fields[2]):
        if number == 2 and isinstance(dim, bytes):
            sizes = dict(_fields(dim))
            shape.append(sizes.get(1, 0) if isinstance(sizes.get(1, 0), int) else 0)
    if len(shape) > MAX_DIMS or any(size >= 1 << 48 for size in shape):
        raise ValueError(f"tensor `{name}` has {len(shape)} dimensions up to {max(shape)}")
    dtype = np.dtype(_DTYPES.get(fields[1], _OTHER_DTYPE))
    return BundleEntry(
        name, tuple(shape), dtype, shard=fields[3], offset=fields[4], num_bytes=fields[5],
        crc=fields[6], is_partitioned=7 in fields,
    )  # fmt: skip


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield number and value of a protocol buffer's fields: integers, or bytes of other kinds."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(message, at)
            yield key >> 3, value
            continue
        length = {1: 8, 5: 4}.get(kind)
        if kind == 2:
            length, at = _varint(message, at)
        if length is None or at + length > len(message):
            raise ValueError(f"a field of kind {kind} is cut off or unknown")
        field = message[at : at + length]
        yield key >> 3, field if kind == 2 else int.from_bytes(field, "little")
        at += length
