"""What is written whole or not at all."""

import errno
import os
import resource
import stat
from pathlib import Path

import pytest

from elmokit.errors import InputError
from elmokit.files import atomic
from elmokit.files.atomic import atomic_directory, atomic_file, check_target, reserve

KINDS = {"file": atomic_file, "directory": atomic_directory}


def names(directory):
    return sorted(path.name for path in directory.iterdir())


def content(path):
    """Return the text of a file, or of the only file in a directory."""
    return content(next(path.iterdir())) if path.is_dir() else path.read_text()


def put(path, text):
    (path / "a.txt" if path.is_dir() else path).write_text(text)


def write(opened, text, error=None):
    with opened as path:
        put(path, text)
        if error is not None:
            raise error


def old(folder, kind):
    path = folder / "out"
    if kind == "directory":
        path.mkdir()
    put(path, "old")
    return path


@pytest.mark.parametrize("kind", KINDS)
class TestWhole:
    def test_takes_its_name_at_the_end(self, tmp_path, kind):
        path = tmp_path / "deep" / "out"
        write(KINDS[kind](path), "new")
        assert content(path) == "new"
        assert names(path.parent) == ["out"]

    @pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError, None])
    def test_an_error_leaves_the_old_one_and_a_full_disk_is_named(
        self, tmp_path, kind, error, monkeypatch
    ):
        path = old(tmp_path, kind)

        def fsync(_):  # a disk on which nothing can be forced
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(os, "fsync", fsync)
        with pytest.raises(error or OSError) as raised:
            write(KINDS[kind](path), "half", error)
        if error is None:
            assert (raised.value.errno, raised.value.filename) == (errno.ENOSPC, str(path))
        assert content(path) == "old"
        assert names(tmp_path) == ["out"]

    def test_all_of_it_is_on_disk_before_it_takes_its_name(self, tmp_path, kind, monkeypatch):
        path, forced = tmp_path / "out", []

        def note(what):
            forced.append((what.name, path.exists()))

        monkeypatch.setattr(atomic, "_force_to_disk", note)
        write(KINDS[kind](path), "new")
        parts = ["a.txt", "out"] if kind == "directory" else ["out"]
        assert forced == [*((name, False) for name in parts), (tmp_path.name, True)]

    @pytest.mark.parametrize("umask", [0o022, 0o027, 0o077])
    def test_modes_follow_the_umask(self, tmp_path, kind, umask):
        """A library may write files that only the owner can read."""
        before = os.umask(umask)
        try:
            with KINDS[kind](tmp_path / "out") as temp_path:
                file = temp_path / "a.txt" if temp_path.is_dir() else temp_path
                file.unlink(missing_ok=True)
                file.touch(0o600)
        finally:
            os.umask(before)
        for path in (tmp_path / "out", *(tmp_path / "out").glob("*")):
            assert stat.S_IMODE(path.stat().st_mode) & 0o666 == 0o666 & ~umask

    def test_the_other_kind_is_refused_at_once(self, tmp_path, kind):
        path = old(tmp_path, "file" if kind == "directory" else "directory")
        error = NotADirectoryError if kind == "directory" else IsADirectoryError
        with pytest.raises(error) as raised, KINDS[kind](path):
            pytest.fail("nothing must be written")
        assert raised.value.filename == str(path)
        assert content(path) == "old"

    def test_a_link_is_written_through(self, tmp_path, kind):
        (tmp_path / "disk").mkdir()
        real = old(tmp_path / "disk", kind)
        (tmp_path / "link").symlink_to(real)
        write(KINDS[kind](tmp_path / "link"), "new")
        assert (tmp_path / "link").is_symlink()
        assert content(real) == "new"
        assert names(tmp_path) == ["disk", "link"]

    def test_devices_and_fifos_are_refused_and_stay(self, tmp_path, kind):
        os.mkfifo(tmp_path / "fifo")
        (tmp_path / "link").symlink_to("/dev/null")
        for path in (tmp_path / "fifo", tmp_path / "link", Path("/dev/null")):
            before = path.stat()
            with pytest.raises(InputError, match=f"{path} is a device, a FIFO or a socket"):
                check_target(path, overwrite=True)
            with pytest.raises(InputError, match=str(path)), KINDS[kind](path):
                pytest.fail("nothing must be written")
            assert (path.stat().st_mode, path.stat().st_ino) == (before.st_mode, before.st_ino)


OUT_OF_SPACE = {
    errno.EFBIG: RuntimeError("write failed: errno = 27, error message = 'File too large'"),
    errno.ENOSPC: OSError("Can't write data (No space left on device)"),
    errno.EDQUOT: OSError(errno.EDQUOT, "Disk quota exceeded"),
}


@pytest.mark.parametrize("number", OUT_OF_SPACE)
def test_out_of_space_errors_of_other_libraries_name_the_target(tmp_path, number):
    path = tmp_path / "a.h5"
    with pytest.raises(OSError) as raised:  # noqa: PT011 (all of them)
        write(atomic_file(path), "half", OUT_OF_SPACE[number])
    assert (raised.value.errno, raised.value.filename) == (number, str(path))
    assert names(tmp_path) == []


def test_what_exists_is_replaced_only_if_asked_for(tmp_path):
    check_target(tmp_path / "new", inputs=[tmp_path / "gone"], overwrite=False)
    path = old(tmp_path, "file")
    with pytest.raises(FileExistsError, match=r"/out .*--overwrite"):
        check_target(path, overwrite=False)
    check_target(path, overwrite=True)


@pytest.mark.parametrize("link", ["symlink_to", "hardlink_to"])
def test_what_is_read_is_never_replaced_by_whatever_name(tmp_path, link):
    source, path = tmp_path / "source", tmp_path / "path"
    source.touch()
    getattr(path, link)(source)
    with pytest.raises(InputError, match="/path "):
        check_target(path, inputs=[tmp_path / "other", source], overwrite=True)


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="this system cannot reserve room")
def test_room_is_reserved_or_refused(tmp_path):
    reserve(tmp_path / "a", 100)
    assert (tmp_path / "a").stat().st_size == 100
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            reserve(tmp_path / "a", 2000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_failed_rename_puts_the_old_directory_back(tmp_path, monkeypatch):
    target, rename = old(tmp_path, "directory"), Path.rename

    def fails(source, destination):
        if source.parent.name.endswith(".partial"):
            raise OSError(errno.EIO, "broken")
        return rename(source, destination)

    monkeypatch.setattr(Path, "rename", fails)
    with pytest.raises(OSError, match="broken"):
        write(atomic_directory(target), "new")
    assert content(target) == "old"
    assert names(tmp_path) == ["out"]
