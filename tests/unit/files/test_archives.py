"""Archives are unpacked within a folder and bounds, and read as a corpus in bounded memory."""

import gzip
import io
import tarfile
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest

from elmokit.errors import FormatError
from elmokit.files import archives
from elmokit.files.archives import archive_kind, unpack


def write_archive(path, files, mode="zip"):
    """Write (name, content) pairs, or whole members of a tar archive."""
    if mode == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("b/", b"")
            for name, content in files:
                member = zipfile.ZipInfo("placeholder")
                member.filename, member.compress_type = name, zipfile.ZIP_DEFLATED
                archive.writestr(member, content)
        return path
    with tarfile.open(path, mode) as archive:
        for member, content in files:
            if isinstance(member, str):
                info = tarfile.TarInfo(member)
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
            else:
                archive.addfile(member)
    return path


def special(kind):
    member = tarfile.TarInfo("x")
    member.type, member.linkname = kind, "/etc/passwd"
    return member, b""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


class TestUnpack:
    FILES = (("a/b.txt", b"text"), ("강.bin", bytes(1000)), ("empty", b""))

    @pytest.mark.parametrize("mode", ["zip", "w", "w:gz", "w:bz2", "w:xz"])
    def test_files_come_out_as_they_went_in(self, mode, folder, tmp_path):
        path = write_archive(tmp_path / "archive", self.FILES, mode)
        assert archive_kind(path) == ("zip" if mode == "zip" else "tar")
        unpack(path, folder)
        for name, content in self.FILES:
            assert (folder / name).read_bytes() == content

    @pytest.mark.parametrize("size", [1 << 20, 200 << 30])
    def test_sparse_files_are_refused(self, size, folder, tmp_path):
        member = tarfile.TarInfo("weights")
        content = b"1\n0\n1\n".ljust(512, b"\0") + b"x"  # one piece, at 0, of one byte
        member.size, member.pax_headers = len(content), {
            "GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": str(size),
            "GNU.sparse.name": "weights",
        }  # fmt: skip
        with tarfile.open(tmp_path / "archive", "w", format=tarfile.PAX_FORMAT) as archive:
            archive.addfile(member, io.BytesIO(content))
        with pytest.raises(FormatError, match=r"archive: .*'weights' is sparse"):
            unpack(tmp_path / "archive", folder)
        assert not list(folder.iterdir())

    @pytest.mark.parametrize("mode", ["zip", "w"])
    def test_a_file_that_is_also_a_folder_is_told_of_the_archive(self, mode, folder, tmp_path):
        path = write_archive(tmp_path / "archive", [("a", b""), ("a/b", b"")], mode)
        with pytest.raises(FormatError, match=r"archive: not unpacked: .* name of a folder"):
            unpack(path, folder)

    @pytest.mark.parametrize("mode", ["zip", "w:gz"])
    @pytest.mark.parametrize("name", ["../out.txt", "/etc/x", "a/../../x"])
    def test_nothing_is_written_outside_of_the_folder(self, name, mode, folder, tmp_path):
        path = write_archive(tmp_path / "archive", [(name, b"x")], mode)
        with suppress(FormatError):  # or the name is cut
            unpack(path, folder)
        assert {path.name for path in tmp_path.iterdir()} == {"archive", "out"}
        assert not Path("/etc/x").exists()

    def test_links_and_devices_are_refused(self, folder, tmp_path):
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE):
            path = write_archive(tmp_path / "archive", [special(kind)], "w")
            with pytest.raises(FormatError, match=r"archive: .*'x' is a link or a device"):
                unpack(path, folder)
            assert not list(folder.iterdir())

    @pytest.mark.parametrize("mode", ["zip", "w:gz"])
    @pytest.mark.parametrize(
        ("bound", "value", "files"),
        [
            ("SMALL_BYTES", 1 << 20, [("a", bytes(1 << 19)), ("b", bytes(1 << 24))]),
            ("MAX_MEMBERS", 3, [(f"f{i}", b"") for i in range(5)]),
        ],
    )
    def test_bombs_are_refused_before_they_fill_the_disk(
        self, mode, bound, value, files, folder, tmp_path, monkeypatch
    ):
        monkeypatch.setattr(archives, bound, value)
        path = write_archive(tmp_path / "archive", files, mode)
        with pytest.raises(FormatError, match=f"{value:,} "):
            unpack(path, folder)
        assert sum(path.stat().st_size for path in folder.iterdir()) <= 1 << 20

    def test_a_tail_of_zeros_is_bounded(self, folder, tmp_path, monkeypatch):
        monkeypatch.setattr(archives, "SMALL_BYTES", 1 << 20)
        plain = write_archive(tmp_path / "plain", [("a", b"text")], "w").read_bytes()
        (tmp_path / "archive").write_bytes(gzip.compress(plain + bytes(1 << 25)))
        with pytest.raises(FormatError, match="more than 1,048,576 bytes"):
            unpack(tmp_path / "archive", folder)

    @pytest.mark.parametrize("mode", ["zip", "w", "w:gz"])
    def test_a_damaged_archive_is_an_error_wherever_it_ends(self, mode, tmp_path):
        noise = bytes(range(1, 9)) * 400
        files = [(f"{i}.txt", b"%d a line\n" % i + noise) for i in (1, 2)]
        path = write_archive(tmp_path / "archive", files, mode)
        whole = path.read_bytes()
        last = () if mode == "w" else (len(whole) - 3,)  # there, only padding is missing
        for number, end in enumerate((40, len(whole) // 3, len(whole) // 2, *last)):
            path.write_bytes(whole[:end])
            (tmp_path / str(number)).mkdir()
            with pytest.raises(FormatError, match="archive"):
                unpack(path, tmp_path / str(number))
