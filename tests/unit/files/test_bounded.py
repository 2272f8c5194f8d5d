"""Files that are read whole are not read without end."""

import gzip

import pytest

from elmokit.config import read_toml
from elmokit.errors import FormatError
from elmokit.files.bounded import read_bounded
from elmokit.files.json_files import read_json
from elmokit.files.lines import read_text
from elmokit.text.word_vocab import read_all_lines
from elmokit.weights.bilm_tf_options import read_options


def blank(path, num_bytes=3 * 2**30):
    """A large file without blocks on disk."""
    with path.open("wb") as file:
        file.truncate(num_bytes)
    return path


@pytest.mark.parametrize("size", [0, 1, 9, 10, 11, 3 * 2**30])
def test_files_up_to_the_size_are_read(tmp_path, size):
    path = blank(tmp_path / "a", size)
    if size <= 10:
        assert read_bounded(path, 10) == bytes(size)
    else:
        with pytest.raises(FormatError, match="a: larger than 10 bytes"):
            read_bounded(path, 10)


@pytest.mark.parametrize(
    "read",
    [lambda path: read_json(path, advice=""), read_options, read_toml, read_all_lines, read_text],
)
def test_every_reader_of_whole_files_refuses_what_is_too_large(tmp_path, read):
    with pytest.raises(FormatError, match="huge: larger than"):
        read(blank(tmp_path / "huge"))


def test_documents_are_bounded_decompressed(tmp_path, monkeypatch):
    monkeypatch.setattr("elmokit.files.lines.MAX_DOCUMENT_BYTES", 2**20)
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(b" " * (2**20 + 1)))
    with pytest.raises(FormatError, match=r"a\.json\.gz: larger than"):
        read_text(tmp_path / "a.json.gz")
