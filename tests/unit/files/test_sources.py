"""What paths stand for, and the bytes of plain and compressed files."""

import bz2
import gzip
import hashlib
import io
import lzma
import re
from pathlib import Path

import pytest

from elmokit.corpus.readers import ReadReport, read_text_lines
from elmokit.embed.vector_sequence import open_vectors
from elmokit.errors import FormatError, InputError
from elmokit.files.json_files import read_json
from elmokit.files.sources import (
    check_file,
    describe_files,
    file_kind,
    file_sha256,
    find_files,
    read_pieces,
    text_sha256,
)
from elmokit.text.word_vocab import WordVocab
from elmokit.vectors.vector_files import read_vectors
from elmokit.weights.arrays import read_arrays

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
        with pytest.raises(FormatError, match=rf"a\{suffix}: .*\{suffix} .*byte \d+ "):
            list(read_pieces(path))


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (gzip.compress(b"text", mtime=0), r"\.gz"),
        (b"PAR1\x15\x04\x15", r"\.parquet"),
        (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS"),
    ],
    ids=["gzip", "parquet", "lfs"],
)
def test_a_file_that_is_no_text_says_what_it_is(tmp_path, content, what):
    (tmp_path / "corpus.txt").write_bytes(content)
    with pytest.raises(FormatError, match=rf"corpus\.txt: .*{what}"):
        list(read_pieces(tmp_path / "corpus.txt"))


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("text", ["a.txt", "a", "a.raw", "A.TXT.GZ", "jsonl"]),
        ("jsonl", ["a.jsonl", "a.JSONL.zst", "a.ndjson.gz"]),
        ("parquet", ["a.parquet"]),
        ("archive", ["a.tar", "a.tar.gz", "a.TGZ", "a.zip"]),
    ],
)
def test_the_name_tells_what_a_file_holds(kind, names):
    assert {file_kind(Path(name)) for name in names} == {kind}


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

    def test_nothing_is_not_the_working_directory(self):
        for path in ("", [""]):
            with pytest.raises(InputError, match="empty"):
                find_files(path)
        with pytest.raises(FileNotFoundError, match="corpus"):
            find_files([])

    def test_what_is_linked_is_read_once(self, tree, tmp_path_factory):
        folder = tmp_path_factory.mktemp("linked") / "more"
        (folder / "sub").mkdir(parents=True)
        (folder / "sub/own.txt").write_text("x", encoding="utf-8")
        (folder / "link").symlink_to(tree)
        (folder / "loop").symlink_to(folder)
        (folder / "a").symlink_to(folder / "sub")  # before it in order, but a link
        (folder / "first.txt").symlink_to(folder / "sub/own.txt")
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


def test_texts_and_files_of_the_same_bytes_have_the_same_hash(tmp_path):
    path = tmp_path / "a"
    path.write_bytes("한 e\n".encode())
    assert (
        file_sha256(path) == text_sha256("한 e\n") == hashlib.sha256(path.read_bytes()).hexdigest()
    )
    assert len(text_sha256("\udc80")) == 64


def test_a_file_is_held_to_what_was_recorded(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"abc")
    recorded = {"num_bytes": 3, "sha256": file_sha256(path), "advice": "Write it again."}
    check_file(path, **recorded)
    for content, what in ((b"abx", "sha256"), (b"abcd", "3 .* 4"), (None, "missing.* 3 ")):
        path.unlink()
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(FormatError, match=rf"/a: .*{what}.*Write it again"):
            check_file(path, **recorded)


def read_corpus(path):
    return list(read_text_lines([path], ReadReport()))


def read_weights(path):
    read_arrays(path, {"weight": (2, 2), "bias": (2,)}, sha256=None, advice="")


def read_settings(path):
    read_json(path, advice="")


@pytest.mark.parametrize(
    ("read", "name"), [
        (read_corpus, "a.txt"), (read_corpus, "a.txt.gz"), (read_corpus, "a.txt.zst"),
        (read_corpus, "a.jsonl"), (read_corpus, "a.parquet"), (read_vectors, "a.vec"),
        (read_vectors, "a.bin.gz"), (WordVocab.read, "vocab.txt"), (WordVocab.read, "vocab.txt.gz"),
        (open_vectors, "a.h5"), (open_vectors, "a.npz"), (open_vectors, "a.parquet"),
        (read_weights, "model.safetensors"), (read_settings, "config.json"),
    ],
)  # fmt: skip
def test_a_pointer_of_git_lfs_is_called_one_whatever_it_stands_for(read, name, tmp_path):
    path = tmp_path / name
    path.write_text(f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 9\n")
    with pytest.raises(FormatError, match=rf"{name}: .*Git LFS.*git lfs pull"):
        read(path)
