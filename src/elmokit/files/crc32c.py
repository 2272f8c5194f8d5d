"""CRC-32C (Castagnoli) of arrays, as TensorFlow stores it beside every tensor.

A byte at a time in Python would take minutes for a file of weights. A CRC is linear over bits, so
the bytes are cut into lanes of equal length whose CRCs are computed side by side, and then joined.
"""

from functools import cache

import numpy as np

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
