"""Places that one process has for itself, and what killed processes leave of them."""

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from elmokit.files import temporary
from elmokit.files.temporary import (
    cache_entries,
    exclusive_directory,
    make_directory,
    remove_entry,
    remove_leftovers,
    temporary_directory,
    temporary_prefix,
    why_untrusted,
)

LEFT = f".out.h5.{temporary._MACHINE}{'0' * 16}.partial"
KILLED = """
import sys
from pathlib import Path
from elmokit.files.temporary import exclusive_directory, temporary_directory
folder = Path(sys.argv[1])
with temporary_directory(folder, "out.h5") as inside, exclusive_directory(folder / "held", busy=""):
    (inside / "half").write_text("half")
    print(inside, flush=True)
    sys.stdin.read()
"""


def left(folder, name=LEFT):
    (folder / name).mkdir()
    (folder / name / "half").write_text("half")
    return folder / name


def test_a_directory_is_new_private_and_gone_at_the_end(tmp_path):
    with temporary_directory(tmp_path, "a") as one, temporary_directory(tmp_path, "a") as other:
        assert one != other
        assert one.stat().st_mode & 0o777 == 0o700
        (one / "b").write_text("half")
    assert not list(tmp_path.iterdir())


def test_a_name_may_be_as_long_as_systems_allow(tmp_path):
    with temporary_directory(tmp_path, "눈" * 85) as inside:
        assert inside.parent == tmp_path
    assert temporary_prefix(Path("a") / ("x" * 200)) == f"a/.{'x' * 200}."
    short = [temporary_prefix(Path("a") / (letter * 201)) for letter in "xyx"]
    assert short[0] == short[2] != short[1]
    assert len(short[0]) < 80


def test_only_leftovers_of_this_machine_are_removed(tmp_path):
    stay = [
        left(tmp_path, ".out.h5.partial"), left(tmp_path, LEFT[1:]),
        left(tmp_path, f".out.h5.{'f' * 24}.partial"),  # of another machine
        tmp_path / LEFT.replace("0" * 16, "1" * 16),
    ]  # fmt: skip
    stay[-1].symlink_to(stay[1])
    goes = left(tmp_path)
    with temporary_directory(tmp_path, "another"):
        assert not goes.exists()
    assert all((path / "half").exists() for path in stay)


def test_what_a_process_holds_is_its_own_until_it_is_killed(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    with process:
        folder = process.stdout.readline().strip()
        remove_leftovers(tmp_path)
        assert os.listdir(folder) == ["half"]
        busy = pytest.raises(FileExistsError, match="it is busy")
        with busy, exclusive_directory(tmp_path / "held", busy="it is busy"):
            pytest.fail("two processes hold one directory")
        process.send_signal(signal.SIGKILL)
    assert os.path.exists(folder)
    remove_leftovers(tmp_path)
    with exclusive_directory(tmp_path / "held", busy="it is busy"):
        assert (tmp_path / "held").is_dir()
    assert not list(tmp_path.iterdir())


class TestTrust:
    @pytest.fixture
    def home(self, tmp_path):
        """A directory `home/cache` with a file."""
        folder = tmp_path / "home" / "cache"
        folder.mkdir(parents=True, mode=0o755)
        (folder / "file").write_text("")
        (folder / "file").chmod(0o644)
        return folder.parent

    @pytest.mark.parametrize(
        ("place", "mode"),
        [
            *(("cache/file", mode) for mode in (0o666, 0o664, 0o602)),
            *((place, mode) for place in ("cache", "") for mode in (0o777, 0o757)),
        ],
    )
    def test_what_others_may_write_is_named(self, home, place, mode):
        assert why_untrusted(home / "cache" / "file") is None
        (home / place).chmod(mode)
        assert f"{home / place} (mode {mode:o})" in str(why_untrusted(home / "cache" / "file"))

    def test_in_a_sticky_directory_others_replace_nothing(self, home):
        home.chmod(0o1777)
        assert why_untrusted(home / "cache" / "file") is None
        assert why_untrusted(home) is not None  # but they may add to it

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
    @pytest.mark.parametrize("what", ["cache/file", "cache", ""])
    def test_what_another_user_owns_is_not_trusted(self, home, what):
        os.chown(home / what, 54321, -1)
        assert "belongs to user 54321" in str(why_untrusted(home / "cache/file"))

    def test_links_are_followed_above_and_refused_below(self, home, tmp_path):
        (tmp_path / "link").symlink_to(home)
        assert why_untrusted(tmp_path / "link" / "cache") is None
        (home / "link").symlink_to(home / "cache")
        assert f"{home / 'link'} is a link" in str(why_untrusted(home / "link"))
        home.chmod(0o777)
        assert str(home) in str(why_untrusted(tmp_path / "link" / "cache"))

    def test_new_directories_are_writable_for_the_owner_alone(self, tmp_path):
        before = os.umask(0)
        try:
            make_directory(tmp_path / "a" / "b")
        finally:
            os.umask(before)
        for made in (tmp_path / "a", tmp_path / "a" / "b"):
            assert stat.S_IMODE(made.stat().st_mode) == 0o755


def test_entries_are_named_by_a_pattern_and_removed(tmp_path):
    (tmp_path / "a1").mkdir()
    (tmp_path / "a1" / "data").write_bytes(b"123")
    (tmp_path / "a2").write_bytes(b"12345")
    (tmp_path / "other").touch()
    (tmp_path / "a3").symlink_to(tmp_path / "other")
    os.utime(tmp_path / "a2", (1, 1))
    found = cache_entries(tmp_path, r"a\d")
    assert [(entry.path.name, entry.num_bytes) for entry in found] == [("a2", 5), ("a1", 3)]
    for entry in [*found, *found]:  # the second time, as if another process had done it
        remove_entry(entry)
    assert sorted(os.listdir(tmp_path)) == ["a3", "other"]
    assert cache_entries(tmp_path / "none", ".*") == []
