"""Temporary directories, and what killed processes leave of them."""

import os
import signal
import subprocess
import sys

import pytest

from elmokit.files import temporary
from elmokit.files.temporary import (
    remove_leftovers,
    remove_whole,
    scratch_directory,
    temporary_directory,
)

LEFT = f".out.h5.{temporary._MACHINE}{'0' * 16}.partial"
OF_ANOTHER_MACHINE = f".out.h5.{'f' * 24}.partial"
KILLED = """
import os, signal, sys
from pathlib import Path
from elmokit.files.temporary import temporary_directory
with temporary_directory(Path(sys.argv[1]), "out.h5") as folder:
    (folder / "half").write_text("half")
    print(folder, flush=True)
    sys.stdin.read()
"""


def left(folder, name=LEFT, mode=0o700):
    (folder / name).mkdir()
    (folder / name / "half").write_text("half")
    (folder / name).chmod(mode)
    return folder / name


def test_a_directory_is_new_private_and_gone_at_the_end(tmp_path):
    with temporary_directory(tmp_path, "a") as one, temporary_directory(tmp_path, "a") as other:
        assert one != other
        assert one.stat().st_mode & 0o777 == 0o700
        (one / "b").write_text("half")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "stays"),
    [
        (LEFT, False), (".out.h5.partial", True), (LEFT[1:], True), (".x", True),
        (OF_ANOTHER_MACHINE, True),
    ],
)  # fmt: skip
def test_leftovers_are_removed_by_the_next_one(tmp_path, name, stays):
    place = left(tmp_path, name)
    with temporary_directory(tmp_path, "another"):
        assert place.exists() == stays


def test_files_links_and_foreign_directories_are_no_leftovers(tmp_path, monkeypatch):
    (tmp_path / LEFT).write_text("a file")
    other = tmp_path / "other"
    other.mkdir(0o700)
    (other / "precious").write_text("precious")
    (tmp_path / LEFT.replace("0" * 16, "1" * 16)).symlink_to(other)
    open_to_all = left(tmp_path, LEFT.replace("0" * 16, "2" * 16), 0o755)
    remove_leftovers(tmp_path)
    assert (tmp_path / LEFT).exists()
    assert (other / "precious").exists()
    assert open_to_all.exists()
    foreign = left(tmp_path, LEFT.replace("0" * 16, "3" * 16))
    owner = os.geteuid()
    monkeypatch.setattr(temporary.os, "geteuid", lambda: owner + 1)
    remove_leftovers(tmp_path)
    assert foreign.exists()


def test_a_directory_in_use_stays_until_its_process_is_killed(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    with process:
        folder = process.stdout.readline().strip()
        remove_leftovers(tmp_path)
        assert os.listdir(folder) == ["half"]
        process.send_signal(signal.SIGKILL)
    assert os.path.exists(folder)
    remove_leftovers(tmp_path)
    assert not list(tmp_path.iterdir())


def test_where_nothing_can_be_locked_leftovers_stay(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError("no locks here")

    kept = left(tmp_path)
    monkeypatch.setattr(temporary.fcntl, "flock", refuse)
    with temporary_directory(tmp_path, "a") as folder:
        assert folder.exists()
    assert kept.exists()


def test_a_removed_directory_never_has_a_half_under_its_name(tmp_path, monkeypatch):
    whole, removed = left(tmp_path, "whole"), []
    rmtree = temporary.shutil.rmtree

    def noting(path, **options):
        removed.append((path.parent, os.listdir(path), whole.exists()))
        rmtree(path, **options)

    monkeypatch.setattr(temporary.shutil, "rmtree", noting)
    remove_whole(whole)
    assert removed == [(tmp_path, ["whole"], False)]
    assert not list(tmp_path.iterdir())


def test_scratch_space_is_in_the_folder_for_temporary_files(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with scratch_directory("elmokit-vocab") as folder:
        assert folder.parent == tmp_path
