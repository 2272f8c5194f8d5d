import gzip
import io
import tarfile
import zipfile

import pytest

from elmokit.errors import FormatError
from elmokit.files import archives
from elmokit.files.archives import archive_kind, unpack


def tar(path, members, mode="w:gz"):
    """Write a tar archive of (name, content) pairs or whole members."""
    with tarfile.open(path, mode) as archive:
        for one in members:
            member, content = (one, b"") if isinstance(one, tarfile.TarInfo) else one
            if isinstance(member, str):
                member = tarfile.TarInfo(member)
                member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def zipped(path, members, compression=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return path


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


MEMBERS = [("a/b.txt", b"text"), ("강.bin", bytes(1000)), ("empty", b"")]


@pytest.mark.parametrize("mode", ["zip", "w", "w:gz", "w:bz2", "w:xz"])
def test_files_come_out_as_they_went_in(mode, folder, tmp_path):
    path = tmp_path / "archive"
    zipped(path, MEMBERS) if mode == "zip" else tar(path, MEMBERS, mode)
    assert archive_kind(path) == ("zip" if mode == "zip" else "tar")
    unpack(path, folder)
    for name, content in MEMBERS:
        assert (folder / name).read_bytes() == content


def test_other_files_are_no_archives(tmp_path):
    for content in (b"", b"text", b"\x89HDF\r\n\x1a\n" + bytes(600)):
        (tmp_path / "f").write_bytes(content)
        assert archive_kind(tmp_path / "f") is None


@pytest.mark.parametrize(
    "name", ["../out.txt", "/etc/x", "a/../../x", "..", "a\\..\\x", "C:/x", "a/b:c", "a/\0b"]
)
@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_names_that_lead_out_are_refused(kind, name, folder, tmp_path):
    path = tmp_path / "archive"
    if kind == "tar":
        tar(path, [(name, b"x")])
        if "\0" in name:  # which ends a name there
            pytest.skip("no such name in tar")
    else:
        with zipfile.ZipFile(path, "w") as archive:
            member = zipfile.ZipInfo("placeholder")
            member.filename = name
            archive.writestr(member, b"x")
        if "\0" in name:
            pytest.skip("zipfile cuts such names")
    with pytest.raises(FormatError, match="leads out"):
        unpack(path, folder)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["archive", "out"]


def test_links_and_devices_are_refused(folder, tmp_path):
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE):
        member = tarfile.TarInfo("x")
        member.type, member.linkname = kind, "/etc/passwd"
        with pytest.raises(FormatError, match=r"archive: .*'x' is a link or a device"):
            unpack(tar(tmp_path / "archive", [member]), folder)
    link = zipfile.ZipInfo("x")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "archive", "w") as archive:
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(FormatError, match="'x' is a link or a device"):
        unpack(tmp_path / "archive", folder)
    assert not list(folder.iterdir())


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_bombs_are_refused_before_they_fill_the_disk(kind, folder, tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "SMALL_BYTES", 1 << 20)
    members = [("a", bytes(1 << 19)), ("b", bytes(1 << 24))]
    path = (zipped if kind == "zip" else tar)(tmp_path / "archive", members)
    with pytest.raises(FormatError, match=r"more than 1,048,576 bytes.*unpack it yourself"):
        unpack(path, folder)
    assert sum(one.stat().st_size for one in folder.iterdir()) <= 1 << 20


def test_an_archive_in_an_archive_may_not_grow_again(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "SMALL_BYTES", 1 << 10)
    path = zipped(tmp_path / "inner", [("a", bytes(5000))], zipfile.ZIP_STORED)
    with pytest.raises(FormatError, match=r"more than 4,000 bytes"):
        unpack(path, folder, archive_bytes=1000)


@pytest.mark.parametrize("name", ["", "/"])
def test_a_member_without_a_name_is_refused_or_a_folder(name, folder, tmp_path):
    member = zipfile.ZipInfo("x")
    with zipfile.ZipFile(tmp_path / "archive", "w") as archive:
        member.filename = name
        with archive.open(member, "w") as file:
            file.write(b"")
    if name:
        unpack(tmp_path / "archive", folder)
    else:
        with pytest.raises(FormatError, match=r"member '' .*name"):
            unpack(tmp_path / "archive", folder)
    assert not list(folder.iterdir())


def test_a_size_that_is_stated_too_small_gains_nothing(folder, tmp_path):
    path = zipped(tmp_path / "archive", [("a", bytes(100_000))])
    data = path.read_bytes()
    size = (100_000).to_bytes(4, "little")
    assert data.count(size) == 2
    path.write_bytes(data.replace(size, (10).to_bytes(4, "little")))
    with pytest.raises(FormatError, match="damaged or truncated"):
        unpack(path, folder)
    assert all(one.stat().st_size <= 10 for one in folder.iterdir())


def test_a_header_of_gigabytes_is_not_read(folder, tmp_path):
    """Names and attributes of a tar archive are read into memory, whatever their size."""
    header = tarfile.TarInfo("././@PaxHeader")
    header.type, header.size = tarfile.XHDTYPE, 1 << 33
    with gzip.open(tmp_path / "archive", "wb") as file:
        file.write(header.tobuf(tarfile.GNU_FORMAT) + bytes(1 << 20))
    with pytest.raises(FormatError, match="a header states 8,589,934,592 bytes"):
        unpack(tmp_path / "archive", folder)


def test_too_many_files_are_refused(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "MAX_MEMBERS", 3)
    for make in (zipped, tar):
        path = make(tmp_path / "archive", [(f"f{i}-{make.__name__}", b"") for i in range(4)])
        with pytest.raises(FormatError, match="more than 3 files"):
            unpack(path, folder)


def test_a_file_twice_is_refused(folder, tmp_path):
    with pytest.raises(FormatError, match="'a' is there twice"):
        unpack(tar(tmp_path / "archive", [("a", b"1"), ("a", b"2")]), folder)


@pytest.mark.parametrize("names", [("a", "a/b"), ("a/b", "a"), ("a/b", "a/b/c")])
@pytest.mark.parametrize("make", [zipped, tar])
def test_a_file_that_is_a_folder_as_well_is_refused(make, names, folder, tmp_path):
    path = make(tmp_path / "archive", [(name, b"x") for name in names])
    with pytest.raises(FormatError, match=rf"archive: .*'{names[1]}' needs a folder"):
        unpack(path, folder)


@pytest.mark.parametrize("kind", ["zip", "tar"])
@pytest.mark.parametrize("share", [0.2, 0.6, 0.95])
def test_half_an_archive_is_said_to_be_half(kind, share, folder, tmp_path):
    content = bytes(range(256)) * 40
    path = (zipped if kind == "zip" else tar)(
        tmp_path / "archive", [("a", content), ("b", content)]
    )
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    with pytest.raises(FormatError, match=r"archive: damaged or truncated, or one part of several"):
        unpack(path, folder)


def test_a_password_is_named(folder, tmp_path):
    path = zipped(tmp_path / "archive", [("a", b"secret")])
    data = bytearray(path.read_bytes())
    for magic, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(magic) + at] |= 1
    path.write_bytes(data)
    with pytest.raises(FormatError, match="'a' is encrypted"):
        unpack(path, folder)
