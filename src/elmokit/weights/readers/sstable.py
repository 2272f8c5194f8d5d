"""Tables of LevelDB's format, in which TensorFlow keeps the index of a checkpoint.

A table is blocks and a footer. A block holds sorted entries, each of which states how much of its
key it shares with the one before; behind it follow its type and the CRC of both. The footer leads
to the block that lists the others.

Source: LevelDB's ``table_format.md``; TensorFlow's ``core/lib/io/format``.
"""

import struct
from collections.abc import Iterator

from elmokit.files.crc32c import crc32c

MAGIC = bytes.fromhex("57fb808b247547db")
"""The last bytes of a table."""
_FOOTER_BYTES = 48
_TRAILER_BYTES = 5
_CRC_MASK = 0xA282EAD8
_MAX_VARINT_BYTES = 10
MAX_KEY_BYTES, MAX_BLOCKS = 1000, 10_000
"""A key is cheap to state, since it shares bytes with the one before, but not to make."""


def read_table(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield keys and values in the order of the table.

    Raises:
        ValueError: if the table is damaged, truncated or compressed; says where.
    """
    if len(data) < _FOOTER_BYTES or data[-len(MAGIC) :] != MAGIC:
        raise ValueError("the file does not end as a table does: it is truncated or no table")
    footer, at = data[-_FOOTER_BYTES:], 0
    for _ in range(2):
        _, at = varint(footer, at)
    _block(data, footer)  # of metadata, which is only checked
    end = 0
    for number, (_, handle) in enumerate(_entries(data, footer[at:])):
        start, _ = varint(handle, 0)
        if start < end or number >= MAX_BLOCKS:
            raise ValueError(f"more than {MAX_BLOCKS:,} blocks, or one that is listed twice")
        end = start + 1
        yield from _entries(data, handle)


def unmasked(crc: int) -> int:
    """Return the CRC that is stored in this masked form."""
    rotated = (crc - _CRC_MASK) & 0xFFFFFFFF
    return (rotated >> 17 | rotated << 15) & 0xFFFFFFFF


def varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number of variable length and the position behind it."""
    value = 0
    for index in range(_MAX_VARINT_BYTES):
        if at + index >= len(data):
            raise ValueError("a number is cut off")
        byte = data[at + index]
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return value, at + index + 1
    raise ValueError("a number has more than ten bytes")


def _block(data: bytes, handle: bytes) -> tuple[bytes, int]:
    """Return the block at a handle (offset, size), whose CRC is right, and its offset."""
    offset, at = varint(handle, 0)
    size, _ = varint(handle, at)
    end = offset + size
    if end + _TRAILER_BYTES > len(data) - _FOOTER_BYTES:
        raise ValueError(f"a block of {size:,} bytes at {offset:,} leads beyond the file")
    kind, crc = struct.unpack_from("<BI", data, end)
    if crc32c(data[offset : end + 1]) != unmasked(crc):
        raise ValueError(f"the block at byte {offset:,} has another checksum than is stored")
    if kind != 0:
        raise ValueError(f"the block at byte {offset:,} is compressed (type {kind})")
    return data[offset:end], offset


def _entries(data: bytes, handle: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the entries of the block at a handle."""
    block, offset = _block(data, handle)
    size = len(block)
    if size < 4:
        raise ValueError(f"the block at byte {offset:,} is too short")
    limit = size - 4 - 4 * struct.unpack_from("<I", block, size - 4)[0]
    if limit < 0:
        raise ValueError(f"the block at byte {offset:,} states more restarts than it has")
    key, at = b"", 0
    while at < limit:
        shared, at = varint(block, at)
        unshared, at = varint(block, at)
        length, at = varint(block, at)
        if shared > len(key) or at + unshared + length > limit:
            raise ValueError(f"an entry of the block at byte {offset:,} is longer than it")
        if shared + unshared > MAX_KEY_BYTES:
            raise ValueError(
                f"a key of the block at byte {offset:,} has over {MAX_KEY_BYTES:,} bytes"
            )
        key = key[:shared] + block[at : at + unshared]
        at += unshared
        yield key, block[at : at + length]
        at += length
