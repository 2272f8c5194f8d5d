import gzip
import lzma

import pytest

from elmokit.errors import FormatError
from elmokit.files.byte_stream import ByteStream

BYTES = bytes(range(1, 256)) * 4000  # about a megabyte: several pieces


@pytest.fixture(params=["plain", ".gz", ".xz"])
def path(request, tmp_path):
    if request.param == "plain":
        path = tmp_path / "bytes.bin"
        path.write_bytes(BYTES)
        return path
    path = tmp_path / f"bytes.bin{request.param}"
    compress = gzip.compress if request.param == ".gz" else lzma.compress
    path.write_bytes(compress(BYTES))
    return path


def test_bytes_come_in_order_whatever_the_steps(path):
    stream = ByteStream(path)
    assert stream.is_compressed == (path.suffix != ".bin")
    assert stream.ahead(3) == b"\x01\x02\x03"
    assert stream.position == 0
    assert stream.take(700_000, "the beginning") == BYTES[:700_000]
    stream.skip(300_000, "the middle")
    assert stream.position == 1_000_000
    end = BYTES.index(b"\xff", 1_000_000)
    assert stream.take_until(b"\xff", 300, "a word") == BYTES[1_000_000:end]
    assert stream.position == end + 1
    rest = len(BYTES) - stream.position
    assert stream.ahead(rest + 50) == BYTES[-rest:]
    assert stream.take(rest, "the end") == BYTES[-rest:]
    assert stream.ahead(1) == b""


def test_what_is_passed_is_not_held(path):
    stream = ByteStream(path)
    for _ in range(1000):
        stream.take(1000, "a row")
        assert len(stream._held) <= 300_000


@pytest.mark.parametrize("step", ["take", "skip"])
def test_the_end_is_told_with_its_position(path, step):
    stream = ByteStream(path)
    stream.take(1_019_990, "the beginning")
    with pytest.raises(FormatError, match=r"byte 1,019,990: .*row 7"):
        getattr(stream, step)(11, "row 7")


def test_a_border_that_does_not_come_is_told(tmp_path):
    path = tmp_path / "bytes.bin"
    path.write_bytes(b"x" * 100)
    with pytest.raises(FormatError, match=r"byte 0: word 1 .* 64 bytes"):
        ByteStream(path).take_until(b" ", 64, "word 1")
    with pytest.raises(FormatError, match=r"byte 0: .* word 1\."):
        ByteStream(path).take_until(b" ", 200, "word 1")


def test_a_border_at_the_limit_is_found(tmp_path):
    path = tmp_path / "bytes.bin"
    path.write_bytes(b"x" * 63 + b" rest")
    assert ByteStream(path).take_until(b" ", 64, "word 1") == b"x" * 63


def test_a_cut_compressed_file_is_told(tmp_path):
    path = tmp_path / "bytes.bin.gz"
    path.write_bytes(gzip.compress(BYTES)[:-20])
    stream = ByteStream(path)
    with pytest.raises(FormatError, match=r"bytes\.bin\.gz: .*\.gz .*byte 786432 "):
        stream.skip(len(BYTES) + 1, "all")
