"""CRC-32C (Castagnoli) of arrays, as TensorFlow stores it beside every tensor.

A byte at a time in Python would take minutes for a file of weights. A CRC is linear over bits, so
the bytes are cut into lanes of equal length whose CRCs are computed side by side, and then joined.
"""

from functools import cache

import numpy as np

_POLYNOMIAL = 0x82F63B78
_MAX_LANES, _MIN_LANE_BYTES = 1 << 12, 64
_PIECE_BYTES = 1 << 26


def crc32c(content: bytes | np.ndarray) -> int:
    """Return the CRC-32C of bytes, or of a contiguous array's bytes."""
    values = np.frombuffer(content, dtype=np.uint8) if isinstance(content, bytes) else content
    flat = values.reshape(-1).view(np.uint8)
    crc = 0xFFFFFFFF
    for start in range(0, len(flat), _PIECE_BYTES):
        crc = _extend(crc, flat[start : start + _PIECE_BYTES])
    return crc ^ 0xFFFFFFFF


def _extend(crc: int, data: np.ndarray) -> int:
    """Go on from a CRC (before the final inversion) over bytes."""
    num_lanes = min(_MAX_LANES, 1 << max(0, (len(data) // _MIN_LANE_BYTES).bit_length() - 1))
    length = len(data) // num_lanes // 2 * 2
    if length:
        lanes = data[: length * num_lanes].reshape(num_lanes, length).view("<u2")
        table = _pair_table()
        # only the first lane goes on from the bytes before; the others begin at zero
        crcs = np.zeros(num_lanes, dtype=np.uint32)
        crcs[0] = crc
        for column in lanes.T:
            crcs = table[(crcs ^ column) & 0xFFFF] ^ (crcs >> 16)
        crc = _joined(crcs, length)
    table = _byte_table()
    for byte in data[length * num_lanes :].tobytes():
        crc = int(table[(crc ^ byte) & 0xFF]) ^ (crc >> 8)
    return crc


def _joined(crcs: np.ndarray, length: int) -> int:
    """Join the CRCs of neighboring lanes of ``length`` bytes, two by two."""
    # The CRC of two lanes one after the other is that of the first, moved on by as many zero bytes
    # as the second has, plus (xor) that of the second. The matrix for twice the length is the
    # square of the one for the length.
    shift = _shift_by(length)  # what 32 single bits become after so many zero bytes
    while len(crcs) > 1:
        crcs = _apply(shift, crcs[0::2]) ^ crcs[1::2]
        shift = _apply(shift, shift)
    return int(crcs[0])


def _apply(shift: np.ndarray, crcs: np.ndarray) -> np.ndarray:
    result = np.zeros_like(crcs)
    for bit in range(32):
        result ^= np.where(crcs >> np.uint32(bit) & 1, shift[bit], np.uint32(0))
    return result


def _shift_by(num_bytes: int) -> np.ndarray:
    result = np.uint32(1) << np.arange(32, dtype=np.uint32)
    step = _byte_table()[result & 0xFF] ^ (result >> 8)  # one zero byte
    while num_bytes:
        if num_bytes & 1:
            result = _apply(step, result)
        step, num_bytes = _apply(step, step), num_bytes >> 1
    return result


@cache
def _byte_table() -> np.ndarray:
    return _zero_bits(np.arange(256, dtype=np.uint32), 8)


@cache
def _pair_table() -> np.ndarray:
    return _zero_bits(np.arange(1 << 16, dtype=np.uint32), 16)


def _zero_bits(crcs: np.ndarray, count: int) -> np.ndarray:
    for _ in range(count):
        crcs = np.where(crcs & 1, crcs >> 1 ^ np.uint32(_POLYNOMIAL), crcs >> 1)
    return crcs.astype(np.uint32)
