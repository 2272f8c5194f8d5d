"""NumPy archives (.npz), read with no array allocated before its size is checked; checksums."""

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
        # Lanes of equal length are worked on side by side. Zeros in front change nothing, because
        # the CRC of a lane begins at 0.
        num_lanes = min(_MAX_LANES, 1 + len(piece) // _LANE_BYTES)
        length = -(-len(piece) // num_lanes)
        lanes = np.zeros(num_lanes * length, dtype=np.uint8)
        lanes[len(lanes) - len(piece) :] = piece
        lane_crcs = np.zeros(num_lanes, dtype=np.uint32)
        for column in lanes.reshape(num_lanes, length).T:
            lane_crcs = _TABLE[(lane_crcs ^ column) & 0xFF] ^ (lane_crcs >> 8)
        # The CRC of one message after another is that of the first, moved on by as many zeros as
        # the second has bytes, plus (xor) that of the second.
        combined, shift = 0, _zeros(length)
        for lane_crc in lane_crcs.tolist():
            combined = _apply(shift, combined) ^ lane_crc
        crc = _apply(_zeros(len(piece)), crc) ^ combined
    return crc ^ 0xFFFFFFFF


def _crc_table() -> np.ndarray:
    crcs = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        crcs = np.where(crcs & 1, crcs >> 1 ^ np.uint32(_POLYNOMIAL), crcs >> 1)
    return crcs.astype(np.uint32)


_TABLE = _crc_table()


def _zeros(num_bytes: int) -> list[int]:
    """Return what each bit of a CRC becomes by so many zero bytes, by squaring."""
    power = [int(_TABLE[1 << bit & 0xFF]) ^ (1 << bit >> 8) for bit in range(32)]
    result = [1 << bit for bit in range(32)]
    while num_bytes:
        if num_bytes & 1:
            result = [_apply(power, bits) for bits in result]
        power = [_apply(power, bits) for bits in power]
        num_bytes >>= 1
    return result


def _apply(matrix: list[int], crc: int) -> int:
    result = 0
    while crc:
        lowest = crc & -crc
        result ^= matrix[lowest.bit_length() - 1]
        crc ^= lowest
    return result
