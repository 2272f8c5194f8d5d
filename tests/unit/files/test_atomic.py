"""What is written whole or not at all."""

import errno
import os
import stat
from contextlib import nullcontext
from pathlib import Path

import pytest

from elmokit.errors import InputError
from elmokit.files import atomic
from elmokit.files.atomic import (
    atomic_directory,
    atomic_file,
    check_target,
    no_room,
    previous_of,
    replaced_by,
    reserve,
)


@pytest.fixture
def full_disk(monkeypatch):
    """A disk on which nothing can be forced."""

    def fsync(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(atomic.os, "fsync", fsync)


def names(directory):
    return sorted(path.name for path in directory.iterdir())


def write_half(opened):
    with opened as temp_path:
        (temp_path / "a.txt" if temp_path.is_dir() else temp_path).write_text("half")
        raise KeyboardInterrupt


class TestFile:
    def test_takes_its_name_at_the_end(self, tmp_path):
        path = tmp_path / "deep" / "a.txt"
        with atomic_file(path) as temp_path:
            temp_path.write_text("new")
            assert not path.exists()
        assert path.read_text() == "new"
        assert names(path.parent) == ["a.txt"]

    def test_an_error_leaves_the_old_file(self, tmp_path):
        path = tmp_path / "a.txt"
        path.write_text("old")
        with pytest.raises(KeyboardInterrupt):
            write_half(atomic_file(path))
        assert path.read_text() == "old"
        assert names(tmp_path) == ["a.txt"]

    @pytest.mark.usefixtures("full_disk")
    def test_a_full_disk_leaves_the_old_file(self, tmp_path):
        path = tmp_path / "a.txt"
        path.write_text("old")
        with pytest.raises(OSError, match="No space left"), atomic_file(path) as temp_path:
            temp_path.write_text("new")
        assert path.read_text() == "old"
        assert names(tmp_path) == ["a.txt"]

    def test_is_on_disk_before_it_takes_its_name(self, tmp_path, monkeypatch):
        path, forced = tmp_path / "a.txt", []
        monkeypatch.setattr(
            atomic, "_force_to_disk", lambda what: forced.append((what.name, path.exists()))
        )
        with atomic_file(path) as temp_path:
            temp_path.write_text("new")
        assert forced == [("a.txt", False), (tmp_path.name, True)]

    def test_a_directory_is_refused_at_once(self, tmp_path):
        with pytest.raises(IsADirectoryError) as raised, atomic_file(tmp_path):
            pytest.fail("nothing must be written")
        assert raised.value.filename == str(tmp_path)


class TestMessages:
    """A name that stands for the target is never shown."""

    @pytest.mark.parametrize("whole", [atomic_file, atomic_directory])
    @pytest.mark.usefixtures("full_disk")
    def test_a_full_disk_names_the_target(self, tmp_path, whole):
        path = tmp_path / "a"
        with pytest.raises(OSError, match="No space left") as raised, whole(path) as temp_path:
            (temp_path / "b" if temp_path.is_dir() else temp_path).write_text("new")
        assert (raised.value.errno, raised.value.filename) == (errno.ENOSPC, str(path))

    @pytest.mark.parametrize(
        "error",
        [
            RuntimeError("write failed: errno = 27, error message = 'File too large'"),
            OSError("Can't write data (No space left on device)"),
            OSError(errno.EDQUOT, "Disk quota exceeded"),
        ],
    )
    def test_out_of_space_errors_of_other_libraries_name_the_target(self, tmp_path, error):
        path = tmp_path / "a.h5"
        number = no_room(error)
        with pytest.raises(OSError) as raised, atomic_file(path):  # noqa: PT011 (all of them)
            raise error
        assert (raised.value.errno, raised.value.filename) == (number, str(path))
        assert names(tmp_path) == []

    def test_system_errors_about_the_temporary_file_name_the_target(self, tmp_path):
        path = tmp_path / "a"
        with pytest.raises(PermissionError) as raised, atomic_directory(path) as temp_path:
            raise PermissionError(errno.EACCES, "Permission denied", str(temp_path / "b"))
        assert raised.value.filename == str(path)

    @pytest.mark.parametrize(
        "error",
        [
            FileNotFoundError(errno.ENOENT, "No such file", "elsewhere.txt"),
            OSError(errno.ENOSPC, "No space left on device", "elsewhere.txt"),
            ValueError("nothing to do with files"),
        ],
    )
    def test_errors_about_something_else_stay(self, tmp_path, error):
        with pytest.raises(type(error)) as raised, atomic_file(tmp_path / "a"):
            raise error
        assert raised.value is error
        assert getattr(error, "filename", "elsewhere.txt") == "elsewhere.txt"


class TestTarget:
    def test_what_does_not_exist_may_be_written(self, tmp_path):
        check_target(tmp_path / "new", inputs=[tmp_path / "gone"], overwrite=False)

    def test_what_exists_only_if_asked_for(self, tmp_path):
        path = tmp_path / "old"
        path.touch()
        with pytest.raises(FileExistsError, match=r"/old .*--overwrite"):
            check_target(path, overwrite=False)
        check_target(path, overwrite=True)

    @pytest.mark.parametrize("link", ["symlink_to", "hardlink_to"])
    def test_what_is_read_never_by_whatever_name(self, tmp_path, link):
        source, path = tmp_path / "source", tmp_path / "path"
        source.touch()
        getattr(path, link)(source)
        with pytest.raises(InputError, match="/path "):
            check_target(path, inputs=[tmp_path / "other", source], overwrite=True)


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="this system cannot reserve room")
def test_room_is_reserved_or_refused(tmp_path):
    import resource

    path = tmp_path / "a"
    reserve(path, 100)
    assert path.stat().st_size == 100
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            reserve(path, 2000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="this system cannot reserve room")
@pytest.mark.parametrize("number", [errno.EOPNOTSUPP, errno.ENOSPC])
def test_room_where_the_file_system_cannot_reserve_it(tmp_path, monkeypatch, number):
    import fcntl

    def fails(descriptor, *_):
        assert not fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_APPEND, "glibc would refuse it"
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "posix_fallocate", fails)
    if number == errno.EOPNOTSUPP:
        reserve(tmp_path / "a", 100)
    else:
        with pytest.raises(OSError, match="No space left"):
            reserve(tmp_path / "a", 100)


class TestDirectory:
    @pytest.fixture
    def old(self, tmp_path):
        directory = tmp_path / "model"
        directory.mkdir()
        (directory / "old.txt").write_text("old")
        return directory

    def test_takes_its_name_at_the_end(self, tmp_path):
        directory = tmp_path / "deep" / "model"
        with atomic_directory(directory) as temp_path:
            (temp_path / "a.txt").write_text("new")
            assert not directory.exists()
        assert names(directory) == ["a.txt"]
        assert names(directory.parent) == ["model"]

    def test_all_of_it_is_on_disk_before_it_takes_its_name(self, tmp_path, monkeypatch):
        directory, forced = tmp_path / "model", []
        monkeypatch.setattr(
            atomic, "_force_to_disk", lambda what: forced.append((what.name, directory.exists()))
        )
        with atomic_directory(directory) as temp_path:
            (temp_path / "deep").mkdir()
            (temp_path / "deep" / "a.txt").write_text("new")
            (temp_path / "b.txt").write_text("new")
        *before, last = forced
        assert sorted(before) == [(name, False) for name in ("a.txt", "b.txt", "deep", "model")]
        assert last == (tmp_path.name, True)

    def test_replaces_the_old_one_with_all_that_is_in_it(self, old):
        with atomic_directory(old) as temp_path:
            (temp_path / "a.txt").write_text("new")
        assert names(old) == ["a.txt"]
        assert names(old.parent) == ["model"]

    def test_an_error_leaves_the_old_one(self, old):
        with pytest.raises(KeyboardInterrupt):
            write_half(atomic_directory(old))
        assert names(old) == ["old.txt"]
        assert names(old.parent) == ["model"]

    @pytest.mark.usefixtures("full_disk")
    def test_a_full_disk_leaves_the_old_one(self, old):
        with pytest.raises(OSError, match="No space left"), atomic_directory(old) as temp_path:
            (temp_path / "a.txt").write_text("new")
        assert names(old) == ["old.txt"]
        assert names(old.parent) == ["model"]

    def test_a_failed_rename_puts_the_old_one_back(self, old, monkeypatch):
        rename = atomic.Path.rename

        def fails(source, target):
            if source.parent.name.endswith(".partial"):
                raise OSError(errno.EIO, "broken")
            return rename(source, target)

        monkeypatch.setattr(atomic.Path, "rename", fails)
        with pytest.raises(OSError, match="broken"), atomic_directory(old) as temp_path:
            (temp_path / "a.txt").write_text("new")
        assert names(old) == ["old.txt"]
        assert names(old.parent) == ["model"]

    @pytest.mark.parametrize("inside", [".", "sub"])
    def test_the_working_directory_is_not_removed(self, old, inside, monkeypatch):
        (old / "sub").mkdir()
        monkeypatch.chdir(old / inside)
        with (
            pytest.raises(InputError, match=r"/model is or holds the working directory"),
            atomic_directory(old),
        ):
            raise AssertionError("nothing may be done")
        assert names(old) == ["old.txt", "sub"]

    def test_a_working_directory_that_is_gone_matters_to_relative_paths_alone(
        self, old, tmp_path, monkeypatch
    ):
        (tmp_path / "gone").mkdir()
        monkeypatch.chdir(tmp_path / "gone")
        (tmp_path / "gone").rmdir()
        with atomic_directory(old) as temp_path:
            (temp_path / "new.txt").write_text("new")
        assert names(old) == ["new.txt"]

    def test_what_a_kill_left_is_cleared(self, old):
        previous_of(old).mkdir()
        (previous_of(old) / "half.txt").write_text("half")
        with atomic_directory(old) as temp_path:
            (temp_path / "a.txt").write_text("new")
        assert names(old) == ["a.txt"]
        assert names(old.parent) == ["model"]

    def test_one_from_another_process_may_stay(self, tmp_path):
        path = tmp_path / "model"
        with atomic_directory(path, keep=path.exists) as temp_path:
            (temp_path / "a.txt").write_text("new")
            path.mkdir()
            (path / "other.txt").write_text("by another process")
        assert names(path) == ["other.txt"]
        assert names(tmp_path) == ["model"]

    def test_a_file_is_refused_at_once(self, tmp_path):
        (tmp_path / "model").write_text("precious")
        with pytest.raises(NotADirectoryError), atomic_directory(tmp_path / "model"):
            pytest.fail("nothing must be written")
        assert (tmp_path / "model").read_text() == "precious"


class TestMode:
    """A library may write files that only the owner can read; ours follow the umask."""

    @pytest.fixture(autouse=True, params=[0o022, 0o027, 0o077])
    def mode(self, request):
        before = os.umask(request.param)
        yield 0o666 & ~request.param
        os.umask(before)

    def test_of_a_file(self, tmp_path, mode):
        with atomic_file(tmp_path / "a") as temp_path:
            temp_path.unlink()
            temp_path.touch(0o600)
        assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == mode

    def test_of_a_directory(self, tmp_path, mode):
        with atomic_directory(tmp_path / "a") as temp_path:
            (temp_path / "b").touch(0o600)
        assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == mode
        assert stat.S_IMODE((tmp_path / "a").stat().st_mode) & 0o666 == mode


class TestLinksAndDevices:
    def test_a_link_is_written_through(self, tmp_path):
        real = tmp_path / "disk" / "a.txt"
        real.parent.mkdir()
        real.write_text("old")
        link = tmp_path / "a.txt"
        link.symlink_to(real)
        with atomic_file(link) as temp_path:
            temp_path.write_text("new")
        assert link.is_symlink()
        assert real.read_text() == "new"
        assert names(tmp_path) == ["a.txt", "disk"]

    def test_so_is_a_link_to_nothing_yet_and_to_a_directory(self, tmp_path):
        (tmp_path / "link").symlink_to(tmp_path / "new.txt")
        with atomic_file(tmp_path / "link") as temp_path:
            temp_path.write_text("new")
        assert (tmp_path / "new.txt").read_text() == "new"
        (tmp_path / "real").mkdir()
        (tmp_path / "model").symlink_to(tmp_path / "real")
        with atomic_directory(tmp_path / "model") as fresh:
            (fresh / "a.txt").write_text("new")
        assert (tmp_path / "model").is_symlink()
        assert names(tmp_path / "real") == ["a.txt"]

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a link to another user")
    def test_a_link_that_another_user_planted_is_refused(self, tmp_path):
        public = tmp_path / "public"
        public.mkdir()
        public.chmod(0o1777)
        (tmp_path / "mine").write_text("precious")
        (public / "out").symlink_to(tmp_path / "mine")
        replaced_by(public / "out")  # of the same user
        os.lchown(public / "out", 12345, 12345)
        with pytest.raises(InputError, match=r"/out .*link .*another user"):
            check_target(public / "out", overwrite=True)
        assert (tmp_path / "mine").read_text() == "precious"

    @pytest.mark.parametrize("write", [atomic_file, atomic_directory])
    def test_devices_and_fifos_are_refused_and_stay(self, tmp_path, write):
        os.mkfifo(tmp_path / "fifo")
        (tmp_path / "link").symlink_to("/dev/null")
        for path in (tmp_path / "fifo", tmp_path / "link", Path("/dev/null")):
            before = path.stat()
            with pytest.raises(InputError, match=f"{path} is a device, a FIFO or a socket"):
                check_target(path, overwrite=True)
            with pytest.raises(InputError, match=str(path)), write(path):
                pytest.fail("nothing must be written")
            assert path.stat().st_mode == before.st_mode
            assert path.stat().st_ino == before.st_ino
        assert names(tmp_path) == ["fifo", "link"]

    def test_the_temporary_file_has_no_name_to_plant_a_link_at(self, tmp_path):
        found = []
        for _ in range(2):
            with atomic_file(tmp_path / "a") as temp_path:
                temp_path.write_text("new")
                found.append(temp_path)
                assert stat.S_IMODE(temp_path.parent.stat().st_mode) == 0o700
        assert found[0] != found[1]

    def test_the_longest_names_can_be_written(self, tmp_path):
        path = tmp_path / ("가" * 85)
        with atomic_file(path) as temp_path:
            temp_path.write_text("new")
        assert path.read_text() == "new"


@pytest.mark.parametrize("number", [errno.EINVAL, errno.EIO])
def test_directories_that_cannot_be_forced_to_disk(tmp_path, monkeypatch, number):
    force = os.fsync

    def fails(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(number, os.strerror(number))
        force(descriptor)

    monkeypatch.setattr(os, "fsync", fails)
    is_harmless = number == errno.EINVAL
    expected = nullcontext() if is_harmless else pytest.raises(OSError, match="Input/output")
    with expected, atomic_file(tmp_path / "a") as temp_path:
        temp_path.write_text("whole")
    assert (tmp_path / "a").read_text() == "whole"
