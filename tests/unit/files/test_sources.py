"""What paths stand for, and the bytes of plain and compressed files."""

import bz2
import gzip
import hashlib
import io
import lzma
import re
import tarfile
from contextlib import nullcontext
from pathlib import Path

import pytest

from elmokit.errors import FormatError
from elmokit.files.remote import RemoteFile
from elmokit.files.sources import describe_files, find_files, read_pieces

TEXT = "The bank opened.\n강가의 은행\n".encode() * 200


def compress_zst(data):
    return pytest.importorskip("zstandard").ZstdCompressor().compress(data)


COMPRESS = {".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress, ".zst": compress_zst}


@pytest.mark.parametrize("suffix", COMPRESS)
class TestCompression:
    def test_files_give_the_text_also_of_several_parts(self, tmp_path, suffix):
        path, compress = tmp_path / f"a{suffix}", COMPRESS[suffix]
        for parts in ([TEXT], [TEXT, b"end\n"], [b""]):
            path.write_bytes(b"".join(map(compress, parts)))
            assert b"".join(read_pieces(path)) == b"".join(parts)

    @pytest.mark.parametrize("share", [0, 0.3, 0.95])
    def test_a_cut_file_is_an_error(self, tmp_path, suffix, share):
        whole, path = COMPRESS[suffix](TEXT), tmp_path / f"a{suffix}"
        path.write_bytes(whole[: int(share * len(whole))])  # 0: as after a failed download
        with pytest.raises(FormatError, match=rf"a\{suffix}: .*\{suffix} "):
            list(read_pieces(path))


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (gzip.compress(b"text", mtime=0), r"\.gz"),
        (b"PAR1\x15\x04\x15", r"\.parquet"),
    ],
    ids=["gzip", "parquet"],
)
def test_a_file_that_is_no_text_says_what_it_is(tmp_path, content, what):
    (tmp_path / "corpus.txt").write_bytes(content)
    with pytest.raises(FormatError, match=rf"corpus\.txt: .*{what}"):
        list(read_pieces(tmp_path / "corpus.txt"))


@pytest.mark.parametrize("name", ["c.tgz", "c.tar.gz"])
def test_a_tar_archive_is_to_be_unpacked(tmp_path, name):
    with tarfile.open(tmp_path / name, "w:gz") as archive:
        archive.add(__file__, "a.txt")
    with pytest.raises(FormatError, match=r"Unpack it\."):
        list(read_pieces(tmp_path / name))


def test_an_error_of_a_storage_is_no_damage(monkeypatch):
    monkeypatch.setattr(RemoteFile, "open", lambda *_: nullcontext(Dropped()))
    with pytest.raises(FormatError, match=r"s3://b/c\.txt: not read: reset\. Try again"):
        list(read_pieces(RemoteFile("s3://b/c.txt")))


class Dropped:
    def read(self, _):
        raise RuntimeError("reset")


@pytest.fixture
def tree(tmp_path):
    for name in ("b.txt", "a.txt", "sub/c.txt", ".hidden", "sub/.git/x"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("text\n", encoding="utf-8")
    return tmp_path


def names(paths, root):
    return [path.relative_to(root).as_posix() for path in paths]


class TestFindFiles:
    def test_directories_files_and_patterns_in_order(self, tree):
        assert names(find_files(tree), tree) == ["a.txt", "b.txt", "sub/c.txt"]
        given = [str(tree / "sub/c.txt"), str(tree / "*.txt")]
        assert names(find_files(given), tree) == ["sub/c.txt", "a.txt", "b.txt"]
        assert len(find_files(f"{tree}/**/*.txt")) == 3
        assert names(find_files(str(tree / "[s]*")), tree) == ["sub/c.txt"]

    @pytest.mark.parametrize("name", ["missing.txt", "missing/*.txt", "empty"])
    def test_a_path_that_leads_to_no_file_is_an_error(self, tmp_path, name):
        (tmp_path / "empty").mkdir()
        with pytest.raises(FileNotFoundError, match=re.escape(str(tmp_path / name))):
            find_files(tmp_path / name)
        assert find_files(tmp_path / name, missing_ok=True) == []

    def test_a_linked_folder_is_read_once(self, tree, tmp_path_factory):
        folder = tmp_path_factory.mktemp("linked") / "more"
        (folder / "sub").mkdir(parents=True)
        (folder / "sub/own.txt").write_text("x", encoding="utf-8")
        (folder / "link").symlink_to(tree)
        (folder / "loop").symlink_to(folder)
        (folder / "gone.txt").symlink_to(folder / "nothing")
        files = find_files(folder)
        places = sorted(path.resolve() for path in files)
        own = [(folder / "sub/own.txt").resolve()]
        assert places == sorted(own + [path.resolve() for path in find_files(tree)])
        assert find_files(str(folder.parent / "mo*")) == files
        assert find_files(str(folder / "sub/**")) == [folder / "sub/own.txt"]

    def test_what_the_command_writes_is_left_out_unless_named(self, tmp_path):
        text, output, part = tmp_path / "a.txt", tmp_path / "o.npz", tmp_path / "o.npz.parts/part"
        part.parent.mkdir()
        for path in (text, output, part):
            path.touch()
        outside = [output, part.parent]
        assert find_files(tmp_path, exclude=outside) == [text]
        assert find_files(str(tmp_path / "*"), exclude=outside) == [text]
        assert find_files([output, part], exclude=outside) == [output, part]
        with pytest.raises(FileNotFoundError, match="no file at"):
            find_files(str(tmp_path / "*.npz"), exclude=outside)


def test_files_are_described_by_path_size_and_hash_and_streams_by_path(tree):
    path = tree / "a.txt"
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert describe_files([path, Path("-")]) == [
        {"path": str(path), "num_bytes": 5, "sha256": digest},
        {"path": "-", "num_bytes": None, "sha256": None},
    ]


def test_a_dash_is_standard_input(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(TEXT)))
    assert b"".join(read_pieces(Path("-"))) == TEXT
