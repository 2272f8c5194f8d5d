import numpy as np
import pytest

from elmokit.files.crc32c import crc32c


def bit_by_bit(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


@pytest.mark.parametrize(
    ("data", "crc"),
    [(b"", 0), (b"123456789", 0xE3069283), (bytes(32), 0x8A9136AA), (b"\xff" * 32, 0x62A8AB43)],
)
def test_published_values(data, crc):
    """Of RFC 3720, appendix B.4."""
    assert crc32c(data) == crc


@pytest.mark.parametrize("length", [1, 4095, 8191, 8192, 8193, 16389])
def test_any_length(length):
    data = np.random.default_rng(length).bytes(length)
    assert crc32c(data) == bit_by_bit(data)


def test_arrays_of_any_type_and_pieces(monkeypatch):
    array = np.arange(6000, dtype=np.float32).reshape(60, 100)
    whole = crc32c(array)
    assert whole == crc32c(array.tobytes())
    monkeypatch.setattr("elmokit.files.crc32c._PIECE_BYTES", 10_000)
    assert crc32c(array) == whole
