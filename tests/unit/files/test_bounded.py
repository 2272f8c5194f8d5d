"""Files that are read whole are not read without end."""

import os
import threading

import pytest

from elmokit.config import read_toml
from elmokit.errors import FormatError
from elmokit.files import bounded
from elmokit.files.bounded import MAX_DOCUMENT_BYTES, MAX_TOML_BYTES, read_bounded
from elmokit.files.json_files import read_json
from elmokit.files.lines import read_text
from elmokit.text.word_vocab import read_vocab_lines
from elmokit.weights.bilm_tf_options import read_options


def blank(path, num_bytes=3 * 2**30):
    """A large file without blocks on disk."""
    with path.open("wb") as file:
        file.truncate(num_bytes)
    return path


@pytest.mark.parametrize("size", [0, 1, 9, 10])
def test_files_up_to_the_size_are_read(tmp_path, size):
    path = tmp_path / "a"
    path.write_bytes(b"x" * size)
    assert read_bounded(path, 10) == b"x" * size


def test_larger_ones_are_refused_before_they_are_read(tmp_path):
    with pytest.raises(FormatError, match="a: larger than 10 bytes"):
        read_bounded(blank(tmp_path / "a"), 10)
    (tmp_path / "b").write_bytes(b"x" * 11)
    with pytest.raises(FormatError, match="b: larger than 10 bytes"):
        read_bounded(tmp_path / "b", 10)


@pytest.mark.parametrize(("size", "is_read"), [(30, True), (31, False)])
def test_larger_pipes_and_devices_are_refused(tmp_path, monkeypatch, size, is_read):
    monkeypatch.setattr(bounded, "_PIECE_BYTES", 4)
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: path.write_bytes(b"x" * size))
    writer.start()
    if is_read:
        assert read_bounded(path, 30) == b"x" * size
    else:
        with pytest.raises(FormatError, match="pipe: larger than 30 bytes"):
            read_bounded(path, 30)
    writer.join()
    with pytest.raises(FormatError, match="/dev/zero: larger than 30 bytes"):
        read_bounded("/dev/zero", 30)


@pytest.mark.parametrize(
    "read", [lambda path: read_json(path, advice=""), read_options, read_vocab_lines, read_text]
)
def test_every_reader_of_whole_files_refuses_what_is_too_large(tmp_path, read):
    with pytest.raises(FormatError, match="huge: larger than"):
        read(blank(tmp_path / "huge"))


def test_larger_recipes_are_refused(tmp_path):
    with pytest.raises(FormatError, match=rf"huge\.toml: larger than {MAX_TOML_BYTES:,} bytes"):
        read_toml(blank(tmp_path / "huge.toml"))
    (tmp_path / "large.toml").write_bytes(b"a=1" + b" " * (MAX_TOML_BYTES - 3))
    assert read_toml(tmp_path / "large.toml") == {"a": 1}
    with (tmp_path / "large.toml").open("ab") as file:
        file.write(b" ")
    with pytest.raises(FormatError, match=r"large\.toml: larger than"):
        read_toml(tmp_path / "large.toml")


def test_documents_count_decompressed(tmp_path, monkeypatch):
    import gzip

    monkeypatch.setattr("elmokit.files.lines.MAX_DOCUMENT_BYTES", 2**20)
    assert MAX_DOCUMENT_BYTES > 2**20
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(b" " * (2**20 + 1)))
    with pytest.raises(FormatError, match=r"a\.json\.gz: larger than"):
        read_text(tmp_path / "a.json.gz")
