"""The files in archives are read as those of a folder are, in bounded memory."""

import gzip
import io
import tarfile
import tracemalloc
import zipfile

import pytest

from elmokit.corpus.readers import ReadReport, read_text_lines
from elmokit.errors import FormatError

FILES = {
    "./b/first.txt": b"one\ntwo\n",
    "b/.hidden": b"no",
    "__MACOSX/._first.txt": b"\0\1",
    "a/second.jsonl": b'{"text": "three"}\n',
    "../a/third.txt.gz": gzip.compress(b"four"),
}
LINES = ["one", "two", "three", "four"]
NAMES = ["c.tar", "c.tar.gz", "c.TGZ", "c.tar.bz2", "c.tbz2", "c.tar.xz", "c.txz", "c.zip"]


def write_archive(path, files):
    name = path.name.lower()
    if name.endswith(".zip"):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("b/", b"")
            for member, content in files.items():
                archive.writestr(member, content)
        return path
    mode = next((m for end, m in (("gz", "gz"), ("bz2", "bz2"), ("xz", "xz")) if end in name), "")
    mode = "gz" if name.endswith("tgz") else mode
    with tarfile.open(path, f"w:{mode}") as archive:
        for member, content in files.items():
            info = tarfile.TarInfo(member)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        link = tarfile.TarInfo("b/link.txt")
        link.type, link.linkname = tarfile.SYMTYPE, "first.txt"
        archive.addfile(link)
    return path


def lines_of(path):
    return [line.text for line in read_text_lines([path], ReadReport())]


@pytest.mark.parametrize("name", NAMES)
def test_members_are_read_in_order_without_hidden_files_and_links(name, tmp_path):
    assert lines_of(write_archive(tmp_path / name, FILES)) == LINES


def test_zstandard_too(tmp_path):
    zstandard = pytest.importorskip("zstandard")
    plain = write_archive(tmp_path / "c.tar", FILES).read_bytes()
    for name in ("c.tar.zst", "c.tzst"):
        (tmp_path / name).write_bytes(zstandard.compress(plain))
        assert lines_of(tmp_path / name) == LINES


@pytest.mark.parametrize("name", ["c.tar.gz", "c.zip"])
@pytest.mark.parametrize(
    ("member", "content"),
    [("in/bad.txt", b"\xff\xfe\0a" * 99), ("in/inner.tar", b""), ("in/t.parquet", b"PAR1")],
)
def test_a_member_that_cannot_be_read_is_named(name, member, content, tmp_path):
    path = write_archive(tmp_path / name, {"in/a.txt": b"one\n", member: content})
    with pytest.raises(FormatError) as caught:
        lines_of(path)
    assert f"{name}/{member}" in str(caught.value)


@pytest.mark.parametrize("name", ["c.tar", "c.tar.gz", "c.zip"])
def test_a_damaged_archive_is_an_error_wherever_it_ends(name, tmp_path):
    noise = bytes(range(1, 9)) * 400
    path = write_archive(tmp_path / name, {f"{i}.txt": b"%d a line\n" % i + noise for i in (1, 2)})
    whole = path.read_bytes()
    last = () if name == "c.tar" else (len(whole) - 3,)  # of a plain one: only padding is missing
    for end in (0, 40, len(whole) // 3, len(whole) // 2, *last):
        path.write_bytes(whole[:end])
        with pytest.raises(FormatError, match=name):
            lines_of(path)


def test_an_encrypted_zip_is_an_error(tmp_path):
    path = write_archive(tmp_path / "c.zip", {"a.txt": b"one\n"})
    data = bytearray(path.read_bytes())
    data[6] |= 1
    data[data.rindex(b"PK\1\2") + 8] |= 1
    path.write_bytes(data)
    with pytest.raises(FormatError, match="encrypted"):
        lines_of(path)


def test_a_header_that_states_gigabytes_is_not_read(tmp_path):
    info = tarfile.TarInfo("long")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 1 << 33
    path = tmp_path / "c.tar.gz"
    with gzip.open(path, "wb") as file:
        file.write(info.tobuf(tarfile.GNU_FORMAT))
        for _ in range(64):
            file.write(bytes(1 << 20))
    tracemalloc.start()
    with pytest.raises(FormatError, match=r"c\.tar\.gz"):
        lines_of(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 24


def test_an_archive_by_another_name_is_told(tmp_path):
    path = write_archive(tmp_path / "c.tar", FILES).rename(tmp_path / "corpus.txt")
    with pytest.raises(FormatError, match=r"corpus\.txt: .*\.tar"):
        lines_of(path)
