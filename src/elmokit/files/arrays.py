"""NumPy archives (.npz), read with no array allocated before its size is checked; checksums."""

import math
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
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


_POLYNOMIAL = 0x82F63B78
_MAX_LANES, _LANE_BYTES = 1 << 12, 64
_PIECE_BYTES = 1 << 26


def crc32c(content: bytes | np.ndarray) -> int:
    """Return the CRC-32C of bytes, or of a contiguous array's bytes."""
    values = np.frombuffer(content, dtype=np.uint8) if isinstance(content, bytes) else content
    flat = values.reshape(-1).view(np.uint8)
    crc = 0xFFFFFFFF
    for start in range(0, len(flat), _PIECE_BYTES):
        piece = flat[start : start + _PIECE_BYTES]
        # zeros in front of a message change nothing as long as the CRC is 0; the CRC so far is
        # what the first four bytes are combined with
        num_lanes = min(_MAX_LANES, 1 << (len(piece) // _LANE_BYTES).bit_length())
        length = 2 * -(-len(piece) // (2 * num_lanes))
        lanes = np.zeros(num_lanes * length, dtype=np.uint8)
        lanes[len(lanes) - len(piece) :] = piece
        begin = lanes[len(lanes) - len(piece) :][:4]
        begin ^= np.array([crc], "<u4").view(np.uint8)[: len(begin)]
        crc = _crc_of_lanes(lanes.view("<u2").reshape(num_lanes, -1)) ^ crc >> 8 * len(begin)
    return crc ^ 0xFFFFFFFF


def _crc_of_lanes(lanes: np.ndarray) -> int:
    table = _pair_table()
    crcs = np.zeros(len(lanes), dtype=np.uint32)
    for column in lanes.T:
        crcs = table[(crcs ^ column) & 0xFFFF] ^ (crcs >> 16)
    # The CRC of two lanes one after the other is that of the first, moved on by as many zero bytes
    # as the second has, plus (xor) that of the second. The matrix for twice the length is the
    # square of the one for the length.
    shift = np.uint32(1) << np.arange(32, dtype=np.uint32)  # what 32 single bits become
    for _ in range(lanes.shape[1]):
        shift = table[shift & 0xFFFF] ^ (shift >> 16)
    while len(crcs) > 1:
        crcs = _apply(shift, crcs[0::2]) ^ crcs[1::2]
        shift = _apply(shift, shift)
    return int(crcs[0])


def _apply(shift: np.ndarray, crcs: np.ndarray) -> np.ndarray:
    result = np.zeros_like(crcs)
    for bit in range(32):
        result ^= np.where(crcs >> np.uint32(bit) & 1, shift[bit], np.uint32(0))
    return result


@cache
def _pair_table() -> np.ndarray:
    """Return what two bytes become."""
    crcs = np.arange(1 << 16, dtype=np.uint32)
    for _ in range(16):
        crcs = np.where(crcs & 1, crcs >> 1 ^ np.uint32(_POLYNOMIAL), crcs >> 1)
    return crcs.astype(np.uint32)
