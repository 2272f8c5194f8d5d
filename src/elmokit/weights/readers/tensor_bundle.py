"""Checkpoints of TensorFlow, version 2: ``PREFIX.index`` and ``PREFIX.data-00000-of-00001``.

The index is a table (`sstable`) from names to small protocol buffers that say where in the data
files a tensor is. The header is under the empty name.

Source: TensorFlow's ``core/protobuf/tensor_bundle.proto`` and ``core/util/tensor_bundle``.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from elmokit.errors import FormatError
from elmokit.files.bounded import read_bounded
from elmokit.files.crc32c import crc32c
from elmokit.weights.readers.sstable import read_table, unmasked, varint

INDEX_SUFFIX = ".index"
MAX_TENSORS, MAX_SHARDS, MAX_DIMS = 50_000, 10_000, 8
MAX_INDEX_BYTES = 1 << 21
_DTYPES = {
    1: "<f4", 2: "<f8", 3: "<i4", 4: "u1", 5: "<i2", 6: "i1", 9: "<i8", 10: "?", 17: "<u2",
    19: "<f2", 22: "<u4", 23: "<u8",
}  # fmt: skip
"""TensorFlow's numbers of types that NumPy has too."""
_OTHER_DTYPE = np.dtype("V1")
"""Stands for texts, bfloat16 and so on, which no weights here are."""


@dataclass(frozen=True)
class BundleEntry:
    """Where a tensor is."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype
    shard: int
    offset: int
    num_bytes: int
    crc: int
    is_partitioned: bool


class TensorBundle:
    """The tensors of a checkpoint; nothing is read before it is asked for.

    Raises:
        FormatError: if the index is damaged or truncated, of a big-endian machine, or of another
            version; and in `read`.
    """

    def __init__(self, index: Path) -> None:
        self.path = index
        self.prefix = str(index).removesuffix(INDEX_SUFFIX)
        self.entries: dict[str, BundleEntry] = {}
        data = read_bounded(index, MAX_INDEX_BYTES)
        try:
            rows = read_table(data)
            name, header = next(rows, (b"?", b""))
            self.num_shards = self._read_header(name, header)
            for number, (name, value) in enumerate(rows, start=1):
                entry = _entry(name.decode("utf-8", "backslashreplace"), value)
                self.entries[entry.name] = entry
                if number > MAX_TENSORS:
                    raise ValueError(f"more than {MAX_TENSORS:,} tensors")
        except FormatError:
            raise
        except ValueError as error:
            raise FormatError(
                f"{index}: damaged index of a TensorFlow checkpoint: {error}. It has {len(data):,} "
                "bytes; fetch it again."
            ) from error

    @property
    def num_bytes(self) -> int:
        """Size of all data files."""
        return sum(map(self._shard_bytes, range(self.num_shards)))

    def shard_path(self, shard: int) -> Path:
        """Return the data file of a number."""
        return Path(f"{self.prefix}.data-{shard:05d}-of-{self.num_shards:05d}")

    def read(self, entry: BundleEntry) -> np.ndarray:
        """Read a tensor and check its CRC."""
        path = self.shard_path(entry.shard)
        where = f"{path}: tensor `{entry.name}` of shape {entry.shape}"
        expected = math.prod(entry.shape) * entry.dtype.itemsize
        if entry.is_partitioned:
            raise FormatError(
                f"{self.path}: tensor `{entry.name}` is cut into slices, which are not read. Save "
                "it whole with TensorFlow."
            )
        if entry.dtype == _OTHER_DTYPE or entry.num_bytes != expected:
            raise FormatError(
                f"{self.path}: tensor `{entry.name}` of shape {entry.shape} has "
                f"{entry.num_bytes:,} bytes, but {expected:,} of float32 are expected: damaged, or "
                "no weights."
            )
        size = self._shard_bytes(entry.shard)
        if entry.offset + entry.num_bytes > size:
            raise FormatError(
                f"{where} should end at byte {entry.offset + entry.num_bytes:,}, but the file has "
                f"{size:,}: truncated, or of another checkpoint. Fetch it again."
            )
        with path.open("rb") as file:
            file.seek(entry.offset)
            array = np.fromfile(file, dtype=entry.dtype, count=math.prod(entry.shape))
        if array.nbytes != entry.num_bytes or crc32c(array) != unmasked(entry.crc):
            raise FormatError(
                f"{where} has another checksum than {self.path.name} states: damaged, or of "
                "another checkpoint. Fetch both again."
            )
        return array.reshape(entry.shape)

    def _shard_bytes(self, shard: int) -> int:
        path = self.shard_path(shard)
        if shard >= self.num_shards or not path.exists():
            raise FormatError(
                f"{path} is missing: {self.path.name} says that the checkpoint has "
                f"{self.num_shards} data file(s), of the same name as the index. Fetch all of them."
            )
        return path.stat().st_size

    def _read_header(self, name: bytes, header: bytes) -> int:
        if name != b"":
            raise FormatError(
                f"{self.path}: a table, but not the index of a TensorFlow checkpoint of version 2 "
                "(it has no header). Checkpoints of version 1 are not read: save it again with "
                "TensorFlow 1 (tf.train.Saver)."
            )
        fields = dict(_fields(header))
        if fields.get(2, 0) != 0:
            raise FormatError(
                f"{self.path}: the checkpoint is of a big-endian machine; only little-endian ones "
                "are read. Load and save it with TensorFlow on a usual machine."
            )
        num_shards = fields.get(1, 1)
        if not isinstance(num_shards, int) or not 1 <= num_shards <= MAX_SHARDS:
            raise ValueError(f"it states {num_shards!r} data files")
        return num_shards


def _entry(name: str, value: bytes) -> BundleEntry:
    numbers = {1: 0, 3: 0, 4: 0, 5: 0, 6: 0}
    shape: tuple[int, ...] = ()
    is_partitioned = False
    for number, field in _fields(value):
        if number == 2 and isinstance(field, bytes):
            shape = tuple(_dims(field))
        elif number == 7:
            is_partitioned = True
        elif number in numbers and isinstance(field, int):
            numbers[number] = field
    if len(shape) > MAX_DIMS or any(size >= 1 << 48 for size in shape):
        raise ValueError(
            f"tensor `{name}` has a shape of {len(shape)} dimensions up to {max(shape)}"
        )
    kind, shard, offset, size, crc = numbers.values()
    dtype = np.dtype(_DTYPES[kind]) if kind in _DTYPES else _OTHER_DTYPE
    return BundleEntry(name, shape, dtype, shard, offset, size, crc, is_partitioned)


def _dims(shape: bytes) -> Iterator[int]:
    for number, dim in _fields(shape):
        if number == 2 and isinstance(dim, bytes):
            yield next((size for n, size in _fields(dim) if n == 1 and isinstance(size, int)), 0)


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield number and value of a protocol buffer's fields: integers, or bytes of other kinds."""
    at = 0
    while at < len(message):
        key, at = varint(message, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(message, at)
            yield key >> 3, value
            continue
        length = {1: 8, 5: 4}.get(kind)
        if kind == 2:
            length, at = varint(message, at)
        if length is None or at + length > len(message):
            raise ValueError(f"a field of kind {kind} is cut off or unknown")
        field = message[at : at + length]
        yield key >> 3, field if kind == 2 else int.from_bytes(field, "little")
        at += length
