import bz2
import gzip
import hashlib
import io
import lzma
import os
import re
from pathlib import Path
from threading import Timer

import pytest

from elmokit.errors import FormatError, InputError

TEXT = "The bank opened.\n강가의 은행\n".encode() * 200


def compress_zst(data):
    return pytest.importorskip("zstandard").ZstdCompressor().compress(data)


COMPRESS = {".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress, ".zst": compress_zst}


@pytest.mark.parametrize("suffix", COMPRESS)
def test_compressed_files_give_the_text(tmp_path, suffix):
    from elmokit.files.sources import read_pieces

    path = tmp_path / f"a.txt{suffix}"
    path.write_bytes(COMPRESS[suffix](TEXT))
    assert b"".join(read_pieces(path)) == TEXT


@pytest.mark.parametrize("suffix", COMPRESS)
def test_concatenated_compressed_files_give_all_of_the_text(tmp_path, suffix):
    from elmokit.files.sources import read_pieces

    path = tmp_path / f"a{suffix}"
    path.write_bytes(COMPRESS[suffix](TEXT) + COMPRESS[suffix](b"end\n"))
    assert b"".join(read_pieces(path)) == TEXT + b"end\n"


@pytest.mark.parametrize("suffix", COMPRESS)
@pytest.mark.parametrize("keep", [0.3, 0.95])
def test_a_cut_compressed_file_is_an_error(tmp_path, suffix, keep):
    from elmokit.files.sources import read_pieces

    whole = COMPRESS[suffix](TEXT)
    path = tmp_path / f"a.txt{suffix}"
    path.write_bytes(whole[: int(keep * len(whole))])
    message = rf"a\.txt\{suffix}: .*\{suffix} .*byte \d+ "
    with pytest.raises(FormatError, match=message):
        list(read_pieces(path))


@pytest.mark.parametrize("suffix", COMPRESS)
def test_a_compressed_file_of_no_bytes_is_damaged(tmp_path, suffix):
    from elmokit.files.sources import read_pieces

    path = tmp_path / f"a.txt{suffix}"
    path.write_bytes(COMPRESS[suffix](b""))
    assert list(read_pieces(path)) == []
    path.write_bytes(b"")  # as after a failed download
    with pytest.raises(FormatError, match=rf"a\.txt\{suffix}: damaged"):
        list(read_pieces(path))


@pytest.mark.parametrize("suffix", COMPRESS)
def test_a_file_that_is_not_compressed_as_named_is_an_error(tmp_path, suffix):
    from elmokit.files.sources import read_pieces

    path = tmp_path / f"a.txt{suffix}"
    path.write_bytes(TEXT)
    with pytest.raises(FormatError, match=rf"a\.txt\{suffix}: .*\{suffix} .*byte 0 "):
        list(read_pieces(path))


def test_pieces_of_zeros_stay_small(tmp_path):
    """A small compressed file can hold a huge line."""
    from elmokit.files.sources import read_pieces

    for suffix in (".gz", ".zst"):
        path = tmp_path / f"zeros{suffix}"
        path.write_bytes(COMPRESS[suffix](bytes(1 << 26)))
        sizes = [len(piece) for piece in read_pieces(path)]
        assert sum(sizes) == 1 << 26
        assert max(sizes) <= 1 << 25


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (gzip.compress(b"text", mtime=0), r"gzip .*\.gz"),
        (b"\xff\xfet\0e\0", r"iconv -f UTF-16 -t UTF-8"),
        (b"%PDF-1.7", "PDF"),
        (b"ELMOKSH1" + bytes(32), "shard of elmokit"),
        (b"\x89HDF\r\n\x1a\n" + bytes(9), "HDF5"),
    ],
)
def test_a_file_that_is_no_text_says_what_it_is(tmp_path, data, what):
    from elmokit.files.sources import read_pieces

    path = tmp_path / "corpus.txt"
    path.write_bytes(data)
    with pytest.raises(FormatError, match=rf"corpus\.txt: .*UTF-8 .*{what}"):
        list(read_pieces(path))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.txt", "text"),
        ("a", "text"),
        ("a.raw", "text"),
        ("A.TXT.GZ", "text"),
        ("a.jsonl", "jsonl"),
        ("a.JSONL.zst", "jsonl"),
        ("a.ndjson.gz", "jsonl"),
        ("a.parquet", "parquet"),
        ("jsonl", "text"),
    ],
)
def test_the_name_tells_what_a_file_holds(name, kind):
    from elmokit.files.sources import file_kind

    assert file_kind(Path(name)) == kind


@pytest.fixture
def tree(tmp_path):
    for name in ("b.txt", "a.txt", "sub/c.txt", ".hidden", "sub/.git/x"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("text\n", encoding="utf-8")
    return tmp_path


def names(paths, root):
    return [path.relative_to(root).as_posix() for path in paths]


def test_a_directory_means_its_visible_files_in_order(tree):
    from elmokit.files.sources import find_files

    assert names(find_files(tree), tree) == ["a.txt", "b.txt", "sub/c.txt"]


@pytest.mark.parametrize("given", ["", [""]])
def test_an_empty_path_is_not_the_working_directory(given):
    from elmokit.files.sources import find_files

    with pytest.raises(InputError, match="empty"):
        find_files(given)


def test_patterns_are_expanded_and_files_keep_their_order(tree):
    from elmokit.files.sources import find_files

    found = find_files([str(tree / "sub/c.txt"), str(tree / "*.txt")])
    assert names(found, tree) == ["sub/c.txt", "a.txt", "b.txt"]
    assert len(find_files(f"{tree}/**/*.txt")) == 3


def test_a_name_with_pattern_characters_is_a_name_first(tmp_path):
    from elmokit.files.sources import find_files

    path = tmp_path / "a[1].txt"
    path.touch()
    assert find_files(path) == [path]


@pytest.mark.parametrize("name", ["missing.txt", "missing/*.txt", "empty"])
def test_a_path_that_leads_to_no_file_is_an_error(tmp_path, name):
    from elmokit.files.sources import find_files

    (tmp_path / "empty").mkdir()
    with pytest.raises(
        FileNotFoundError, match=rf"'{re.escape(str(tmp_path / name))}'.*\*\.txt\.gz"
    ):
        find_files(tmp_path / name)


def test_no_paths_are_an_error():
    from elmokit.files.sources import find_files

    with pytest.raises(FileNotFoundError, match="corpus"):
        find_files([])


def test_files_are_described_by_path_size_and_hash(tree):
    from elmokit.files.sources import describe_files

    path = tree / "a.txt"
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert describe_files([path]) == [{"path": str(path), "num_bytes": 5, "sha256": digest}]


def test_standard_input_has_a_path_alone():
    from elmokit.files.sources import describe_files

    assert describe_files([Path("-")]) == [{"path": "-", "num_bytes": None, "sha256": None}]


def test_a_dash_is_standard_input(monkeypatch):
    from elmokit.files.sources import read_pieces

    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(TEXT)))
    assert b"".join(read_pieces(Path("-"))) == TEXT


def test_zst_without_its_package_names_the_extra(tmp_path, monkeypatch):
    from elmokit.errors import MissingExtraError
    from elmokit.files.sources import read_pieces

    monkeypatch.setitem(__import__("sys").modules, "zstandard", None)
    with pytest.raises(MissingExtraError, match=r"zstandard.*\[zst\]"):
        list(read_pieces(tmp_path / "a.zst"))


def test_a_folder_that_cannot_be_listed_is_no_empty_one(tree, monkeypatch):
    from elmokit.files.sources import find_files

    (tree / "locked").mkdir()
    scandir = os.scandir

    def refuse(path):
        if str(path).endswith("locked"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(PermissionError, match="locked"):
        find_files(tree)


def test_linked_folders_are_read_once_and_patterns_may_match_folders(tree, tmp_path_factory):
    from elmokit.files.sources import find_files

    folder = tmp_path_factory.mktemp("linked") / "more"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub/own.txt").write_text("x", encoding="utf-8")
    (folder / "link").symlink_to(tree)
    (folder / "loop").symlink_to(folder)
    (folder / "a").symlink_to(folder / "sub")  # before it in order, but a link
    (folder / "gone.txt").symlink_to(folder / "nothing")
    found = find_files(folder)
    assert len(found) == len(find_files(tree)) + 1
    assert found[-1] == folder / "sub/own.txt"
    assert find_files(str(folder.parent / "mo*")) == found
    assert find_files(str(folder / "sub/**")) == [folder / "sub/own.txt"]


def test_a_pattern_means_files_and_folders_as_in_a_shell(tmp_path):
    from elmokit.files.sources import find_files

    folder, file = tmp_path / "part_a", tmp_path / "part_b.txt"
    folder.mkdir()
    (folder / "x.txt").write_text("x", encoding="utf-8")
    file.write_text("y", encoding="utf-8")
    (tmp_path / "part_c").symlink_to(tmp_path / "nothing")
    assert find_files(str(tmp_path / "part_*")) == [folder / "x.txt", file]
    assert find_files(str(tmp_path / "**"), exclude=[file]) == [folder / "x.txt"]


def test_of_a_file_and_links_to_it_the_file_is_read(tmp_path):
    from elmokit.files.sources import find_files

    (tmp_path / "b.txt").write_text("x", encoding="utf-8")
    for name in ("a.txt", "c.txt"):
        (tmp_path / name).symlink_to(tmp_path / "b.txt")
    assert find_files(tmp_path) == [tmp_path / "b.txt"]
    (tmp_path / "links").mkdir()
    (tmp_path / "links/a.txt").symlink_to(tmp_path / "b.txt")
    assert find_files(tmp_path / "links") == [tmp_path / "links/a.txt"]
    (tmp_path / "again").symlink_to(tmp_path / "links")
    for pattern in ("**", "*", "*.txt"):
        assert find_files(str(tmp_path / pattern)) == [tmp_path / "b.txt"]


class TestOneFile:
    def test_a_missing_file_is_named(self, tmp_path):
        from elmokit.files.sources import existing_file

        with pytest.raises(FileNotFoundError, match=rf"of labels {tmp_path}/absent\.tsv\. .*\.gz"):
            existing_file(tmp_path / "absent.tsv", what="labels")

    def test_a_directory_is_called_one(self, tmp_path):
        from elmokit.files.sources import existing_file

        with pytest.raises(IsADirectoryError, match=rf"^{tmp_path} is a directory\. .* labels"):
            existing_file(tmp_path, what="labels")

    @pytest.mark.parametrize("is_pipe", [False, True])
    def test_what_can_be_read_once_is_refused_where_it_is_read_twice(self, tmp_path, is_pipe):
        from elmokit.errors import InputError
        from elmokit.files.sources import existing_file

        path = Path("-")
        if is_pipe:
            path = tmp_path / "pipe"
            os.mkfifo(path)
        assert existing_file(path, what="labels") == path
        with pytest.raises(InputError, match=f"^{path}: labels must be read twice.* regular"):
            existing_file(path, what="labels", is_read_twice=True)


def test_what_the_command_writes_is_left_out_of_folders_and_patterns(tmp_path):
    from elmokit.files.sources import find_files

    text, output, parts = tmp_path / "a.txt", tmp_path / "o.npz", tmp_path / "o.npz.parts/part"
    parts.parent.mkdir()
    for path in (text, output, parts):
        path.touch()
    outside = [output, parts.parent]
    assert find_files(tmp_path, exclude=outside) == [text]
    assert find_files(str(tmp_path / "*"), exclude=outside) == [text]
    assert find_files([output, parts], exclude=outside) == [output, parts], "given by name"
    with pytest.raises(FileNotFoundError, match="no corpus file"):
        find_files(str(tmp_path / "*.npz"), exclude=outside)


@pytest.mark.skipif(not hasattr(os, "set_blocking"), reason="pipes always block here")
def test_standard_input_that_does_not_block_is_waited_for(monkeypatch):
    from elmokit.files.sources import read_pieces

    reads, writes = os.pipe()
    os.set_blocking(reads, False)
    with (
        os.fdopen(reads, encoding="utf-8") as stdin,
        os.fdopen(writes, "wb", buffering=0) as sender,
    ):
        monkeypatch.setattr("sys.stdin", stdin)
        pieces = read_pieces(Path("-"))
        sender.write(b"one")
        assert next(pieces) == b"one"
        later = Timer(0.2, lambda: (sender.write(b"two"), sender.close()))
        later.start()
        assert list(pieces) == [b"two"]


def test_a_word_is_no_parquet_file(tmp_path):
    from elmokit.files.sources import read_pieces

    path = tmp_path / "genes.txt"
    path.write_bytes(b"PAR1 is a gene")
    assert list(read_pieces(path)) == [b"PAR1 is a gene"]
    path.write_bytes(b"PAR1\x15\x04\x15")
    with pytest.raises(FormatError, match="Parquet"):
        list(read_pieces(path))
