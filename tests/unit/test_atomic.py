"""What is written whole or not at all."""

import errno
import os

import pytest

from elmokit import atomic
from elmokit.atomic import aside_of, previous_of, whole_directory, whole_file


@pytest.fixture
def full_disk(monkeypatch):
    """A disk on which nothing can be forced."""

    def fsync(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(atomic.os, "fsync", fsync)


def names(directory):
    return sorted(path.name for path in directory.iterdir())


def write_half(opened):
    with opened as aside:
        (aside / "a.txt" if aside.is_dir() else aside).write_text("half")
        raise KeyboardInterrupt


class TestFile:
    def test_takes_its_name_at_the_end(self, tmp_path):
        path = tmp_path / "deep" / "a.txt"
        with whole_file(path) as aside:
            aside.write_text("new")
            assert not path.exists()
        assert path.read_text() == "new"
        assert names(path.parent) == ["a.txt"]

    def test_an_error_leaves_the_old_file(self, tmp_path):
        path = tmp_path / "a.txt"
        path.write_text("old")
        with pytest.raises(KeyboardInterrupt):
            write_half(whole_file(path))
        assert path.read_text() == "old"
        assert names(tmp_path) == ["a.txt"]

    @pytest.mark.usefixtures("full_disk")
    def test_a_full_disk_leaves_the_old_file(self, tmp_path):
        path = tmp_path / "a.txt"
        path.write_text("old")
        with pytest.raises(OSError, match="No space left"), whole_file(path) as aside:
            aside.write_text("new")
        assert path.read_text() == "old"
        assert names(tmp_path) == ["a.txt"]

    def test_what_a_kill_left_is_replaced(self, tmp_path):
        path = tmp_path / "a.txt"
        aside_of(path).write_text("half of a longer text")
        with whole_file(path) as aside:
            aside.write_text("new")
        assert path.read_text() == "new"
        assert names(tmp_path) == ["a.txt"]

    def test_is_on_disk_before_it_takes_its_name(self, tmp_path, monkeypatch):
        path, forced = tmp_path / "a.txt", []
        monkeypatch.setattr(
            atomic, "_force_to_disk", lambda what: forced.append((what.name, path.exists()))
        )
        with whole_file(path) as aside:
            aside.write_text("new")
        assert forced == [(".a.txt.partial", False), (tmp_path.name, True)]

    def test_a_directory_is_refused_at_once(self, tmp_path):
        with pytest.raises(IsADirectoryError) as raised, whole_file(tmp_path):
            pytest.fail("nothing must be written")
        assert raised.value.filename == str(tmp_path)


class TestDirectory:
    @pytest.fixture
    def old(self, tmp_path):
        directory = tmp_path / "model"
        directory.mkdir()
        (directory / "old.txt").write_text("old")
        return directory

    def test_takes_its_name_at_the_end(self, tmp_path):
        directory = tmp_path / "deep" / "model"
        with whole_directory(directory) as aside:
            (aside / "a.txt").write_text("new")
            assert not directory.exists()
        assert names(directory) == ["a.txt"]
        assert names(directory.parent) == ["model"]

    def test_replaces_the_old_one_with_all_that_is_in_it(self, old):
        with whole_directory(old) as aside:
            (aside / "a.txt").write_text("new")
        assert names(old) == ["a.txt"]
        assert names(old.parent) == ["model"]

    def test_an_error_leaves_the_old_one(self, old):
        with pytest.raises(KeyboardInterrupt):
            write_half(whole_directory(old))
        assert names(old) == ["old.txt"]
        assert names(old.parent) == ["model"]

    @pytest.mark.usefixtures("full_disk")
    def test_a_full_disk_leaves_the_old_one(self, old):
        with pytest.raises(OSError, match="No space left"), whole_directory(old) as aside:
            (aside / "a.txt").write_text("new")
        assert names(old) == ["old.txt"]
        assert names(old.parent) == ["model"]

    def test_a_failed_rename_puts_the_old_one_back(self, old, monkeypatch):
        rename = atomic.Path.rename

        def fails(source, target):
            if source == aside_of(old):
                raise OSError(errno.EIO, "broken")
            return rename(source, target)

        monkeypatch.setattr(atomic.Path, "rename", fails)
        with pytest.raises(OSError, match="broken"), whole_directory(old) as aside:
            (aside / "a.txt").write_text("new")
        assert names(old) == ["old.txt"]
        assert names(old.parent) == ["model"]

    def test_what_a_kill_left_is_cleared(self, old):
        for left in (aside_of(old), previous_of(old)):
            left.mkdir()
            (left / "half.txt").write_text("half")
        with whole_directory(old) as aside:
            (aside / "a.txt").write_text("new")
        assert names(old) == ["a.txt"]
        assert names(old.parent) == ["model"]
