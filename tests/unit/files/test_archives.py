"""Archives are unpacked within a folder and bounds, and read as a corpus in bounded memory."""

import gzip
import io
import tarfile
import zipfile

import pytest

from elmokit.corpus.readers import ReadReport, read_text_lines
from elmokit.errors import FormatError
from elmokit.files import archives
from elmokit.files.archives import archive_kind, unpack

MODES = {"c.zip": "zip", "c.tar": "w", "c.tar.gz": "w:gz", "c.TGZ": "w:gz", "c.tar.bz2": "w:bz2"}
MODES |= {"c.tbz2": "w:bz2", "c.tar.xz": "w:xz", "c.txz": "w:xz"}


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

    @pytest.mark.filterwarnings("ignore:Duplicate name")
    @pytest.mark.parametrize("mode", ["zip", "w:gz"])
    @pytest.mark.parametrize(
        "files",
        [
            [("../out.txt", b"x")],
            [("/etc/x", b"x")],
            [("a/../../x", b"x")],
            [("..", b"x")],
            [("a", b"1"), ("a", b"2")],
            [("a", b"1"), ("a/b", b"2")],
            [("a/b", b"1"), ("a", b"2")],
        ],
    )
    def test_names_that_lead_out_or_meet_again_are_refused(self, files, mode, folder, tmp_path):
        path = write_archive(tmp_path / "archive", files, mode)
        with pytest.raises(FormatError, match=f"archive: .*'{files[-1][0]}'"):
            unpack(path, folder)
        assert {path.name for path in tmp_path.iterdir()} == {"archive", "out"}

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
            ("MAX_MEMBERS", 3, [(f"f{i}", b"") for i in range(4)]),
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
        with pytest.raises(FormatError, match="too many bytes"):
            unpack(tmp_path / "archive", folder)


def lines_of(path):
    return [line.text for line in read_text_lines([path], ReadReport())]


class TestCorpus:
    FILES = (
        ("./b/first.txt", b"one\ntwo\n"),
        ("b/.hidden", b"no"),
        ("__MACOSX/._first.txt", b"\0\1"),
        ("a/second.jsonl", b'{"text": "three"}\n'),
        ("../a/third.txt.gz", gzip.compress(b"four")),
    )
    LINES = ("one", "two", "three", "four")

    @pytest.mark.parametrize("name", MODES)
    def test_members_are_read_in_order_without_hidden_files_and_links(self, name, tmp_path):
        links = [special(tarfile.SYMTYPE)] * (MODES[name] != "zip")
        path = write_archive(tmp_path / name, [*self.FILES, *links], MODES[name])
        assert lines_of(path) == [*self.LINES]

    @pytest.mark.parametrize("name", ["c.tar.gz", "c.zip"])
    @pytest.mark.parametrize(
        ("member", "content"),
        [("in/bad.txt", b"\xff\xfe\0a" * 99), ("in/inner.tar", b""), ("in/t.parquet", b"PAR1")],
    )
    def test_a_member_that_cannot_be_read_is_named(self, name, member, content, tmp_path):
        files = [("in/a.txt", b"one\n"), (member, content)]
        path = write_archive(tmp_path / name, files, MODES[name])
        with pytest.raises(FormatError, match=f"{name}/{member}"):
            lines_of(path)

    @pytest.mark.parametrize("name", ["c.tar", "c.tar.gz", "c.zip"])
    def test_a_damaged_archive_is_an_error_wherever_it_ends(self, name, tmp_path):
        noise = bytes(range(1, 9)) * 400
        files = [(f"{i}.txt", b"%d a line\n" % i + noise) for i in (1, 2)]
        path = write_archive(tmp_path / name, files, MODES[name])
        whole = path.read_bytes()
        last = () if name == "c.tar" else (len(whole) - 3,)  # there, only padding is missing
        for end in (0, 40, len(whole) // 3, len(whole) // 2, *last):
            path.write_bytes(whole[:end])
            with pytest.raises(FormatError, match=name):
                lines_of(path)
