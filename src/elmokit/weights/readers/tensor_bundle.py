"""Checkpoints of TensorFlow, version 2: ``PREFIX.index`` and ``PREFIX.data-00000-of-00001``.

The index is a table in LevelDB's format, from names to small protocol buffers that say where in the
data files a tensor is; the header is under the empty name. A table is blocks and a footer. A block
holds sorted entries, each of which states how much of its key it shares with the one before; behind
it follow its type and a checksum, which is not computed. The footer leads to the block that lists
the others.

Source: LevelDB's ``table_format.md``; TensorFlow's ``core/lib/io/format``,
``core/protobuf/tensor_bundle.proto`` and ``core/util/tensor_bundle``.
"""

import itertools
import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from elmokit.errors import FormatError
from elmokit.files.lines import read_bounded
from elmokit.files.sources import damage

INDEX_SUFFIX = ".index"
MAX_TENSORS, MAX_SHARDS = 50_000, 10_000
MAX_INDEX_BYTES = 1 << 21
TABLE_MAGIC = bytes.fromhex("57fb808b247547db")
"""The last bytes of a table."""
MAX_KEY_BYTES, MAX_BLOCKS = 1000, 10_000
"""A key is cheap to state, since it shares bytes with the one before, but not to make."""
_FOOTER_BYTES = 48
_MAX_VARINT_BYTES = 10
_DTYPES = {1: "<f4", 2: "<f8", 3: "<i4", 9: "<i8", 19: "<f2"}
"""TensorFlow's numbers of types that NumPy has too."""
_OTHER_DTYPE = np.dtype("V1")
"""Stands for all others, such as texts, which no weights here are."""


@dataclass(frozen=True)
class BundleEntry:
    name: str
    shape: tuple[int, ...]
    dtype: np.dtype
    shard: int
    offset: int
    num_bytes: int
    is_partitioned: bool


class TensorBundle:
    """The tensors of a checkpoint; nothing is read before it is asked for."""

    def __init__(self, index: Path) -> None:
        self.path = index
        data = read_bounded(index, MAX_INDEX_BYTES)
        with damage(index, "Fetch it again.", what="no whole index of a TensorFlow checkpoint"):
            rows = _read_table(data)
            self._num_shards = _num_shards(*next(rows, (b"?", b"")))
            entries = [_entry(*row) for row in itertools.islice(rows, MAX_TENSORS)]
        self.entries = {entry.name: entry for entry in entries}

    @property
    def num_bytes(self) -> int:
        return sum(self._shard(shard).stat().st_size for shard in range(self._num_shards))

    def read(self, dataset: BundleEntry) -> np.ndarray:
        entry, count = dataset, math.prod(dataset.shape)
        path = self._shard(entry.shard)
        where = f"{path}: tensor `{entry.name}` of shape {entry.shape}"
        is_whole = entry.num_bytes == count * entry.dtype.itemsize and not entry.is_partitioned
        if entry.dtype == _OTHER_DTYPE or not is_whole:
            raise FormatError(f"{where} is damaged, cut into slices, or does not hold numbers.")
        size, end = path.stat().st_size, entry.offset + entry.num_bytes
        if end <= size:  # nothing of a size that is only stated is made
            return np.fromfile(path, entry.dtype, count, offset=entry.offset).reshape(entry.shape)
        raise FormatError(
            f"{where} should end at byte {end:,} of {size:,}: truncated, damaged, or of another "
            "checkpoint."
        )

    def _shard(self, number: int) -> Path:
        prefix = str(self.path).removesuffix(INDEX_SUFFIX)
        path = Path(f"{prefix}.data-{number:05d}-of-{self._num_shards:05d}")
        if number >= self._num_shards or not path.exists():
            raise FormatError(f"{path} is missing, which {self.path.name} belongs to: fetch it.")
        return path


# --- the table


def _read_table(data: bytes) -> Iterator[tuple[bytes, bytes]]:
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


def _block(data: bytes, handle: bytes) -> bytes:
    """Return the block at a handle (offset, size)."""
    offset, at = _varint(handle, 0)
    end = offset + _varint(handle, at)[0]
    if data[end : end + 1] != b"\0":
        raise ValueError(f"the block at byte {offset:,} is compressed or cut off")
    return data[offset:end]


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number of variable length and the position behind it."""
    value = 0
    for index, byte in enumerate(data[at : at + _MAX_VARINT_BYTES]):
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return value, at + index + 1
    raise ValueError(f"the number at {at:,} is cut off or too long")


# --- the protocol buffers


def _num_shards(name: bytes, header: bytes) -> int:
    """Return the number of data files by the header of the index."""
    numbers, _ = _fields(header)
    num_shards = numbers.get(1, 1)
    if name != b"" or numbers.get(2, 0) != 0 or not 1 <= num_shards <= MAX_SHARDS:
        raise ValueError(f"its header {name!r} is not that of version 2, little-endian")
    return num_shards


def _entry(name: bytes, value: bytes) -> BundleEntry:
    numbers, messages = _fields(value)
    _, dims = _fields(dict(messages).get(2, b""))
    shape = tuple(_fields(dim)[0].get(1, 0) for number, dim in dims if number == 2)
    dtype = np.dtype(_DTYPES.get(numbers.get(1, 0), _OTHER_DTYPE))
    return BundleEntry(
        name.decode("utf-8", "backslashreplace"), shape, dtype,
        shard=numbers.get(3, 0), offset=numbers.get(4, 0), num_bytes=numbers.get(5, 0),
        is_partitioned=any(number == 7 for number, _ in messages),
    )  # fmt: skip


def _fields(message: bytes) -> tuple[dict[int, int], list[tuple[int, bytes]]]:
    """Return the fields of a protocol buffer by number: integers, and bytes of other kinds."""
    numbers: dict[int, int] = {}
    messages: list[tuple[int, bytes]] = []
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        kind = key & 7
        if kind == 0:
            numbers[key >> 3], at = _varint(message, at)
            continue
        length = {1: 8, 5: 4}.get(kind)
        if kind == 2:
            length, at = _varint(message, at)
        if length is None or at + length > len(message):
            raise ValueError(f"a field of kind {kind} is cut off or unknown")
        value = message[at : at + length]
        if kind == 2:
            messages.append((key >> 3, value))
        else:
            numbers[key >> 3] = int.from_bytes(value, "little")
        at += length
    return numbers, messages
