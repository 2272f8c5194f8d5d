"""Which compiled libraries are loaded: whole ones that nobody else could have written."""

import ctypes
import os
import re
import stat

import pytest

from elmokit.kernels import build, library_files
from elmokit.kernels.build import load_library

needs_compiler = pytest.mark.skipif(build._compiler() is None, reason="no C compiler here")
pytestmark = [pytest.mark.usefixtures("small_libraries"), needs_compiler]


DAMAGES = {
    "cut": lambda content: content[: len(content) // 2],
    "zeroed": lambda content: content[:4096] + bytes(len(content) - 4096),
    "empty": lambda content: b"",
    "one bit": lambda content: content[:9000] + bytes([content[9000] ^ 1]) + content[9001:],
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=list(DAMAGES))
def test_a_damaged_library_is_never_loaded_but_made_once_more(caplog, damage):
    path = build._build("inference", build._compiler())
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    assert load_library("inference") is not None
    assert f"{path} is damaged: compiling it again" in caplog.text
    assert list(path.parent.iterdir()) == [path]
    assert path.read_bytes() == whole


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no users on this system")
@pytest.mark.parametrize("planted", ["for all", "for a group", "link", "file"])
def test_code_that_others_could_have_written_is_not_loaded(monkeypatch, tmp_path, caplog, planted):
    path = build._build("inference", build._compiler())
    folder = path.parent
    if planted == "link":
        folder.rename(tmp_path / "elsewhere")
        folder.symlink_to(tmp_path / "elsewhere")
    elif planted == "file":
        path.chmod(0o777)
    else:
        folder.chmod(0o777 if planted == "for all" else 0o770)
    opened = []
    open_ = ctypes.CDLL
    monkeypatch.setattr(build.ctypes, "CDLL", lambda name: opened.append(name) or open_(name))
    library = load_library("inference")
    if planted == "file":
        assert f"others may write to {path}" in caplog.text
        assert library is not None  # compiled again
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    else:
        assert library is None
        assert not opened
        assert str(folder) in caplog.text
        assert "XDG_CACHE_HOME" in caplog.text


def test_a_library_stays_private_whatever_the_umask(tmp_path):
    before = os.umask(0)
    try:
        assert load_library("inference") is not None
    finally:
        os.umask(before)
    made = list((tmp_path / "elmokit").rglob("*"))
    assert len(made) == 2
    assert not any(stat.S_IMODE(path.stat().st_mode) & 0o022 for path in made)


def test_what_killed_compilations_left_is_removed_after_a_day(tmp_path):
    folder = tmp_path / "elmokit" / "native"
    folder.mkdir(parents=True)
    names = [".new-0.so.partial", "new-1.so", "new-2.so"]
    for name in names:
        (folder / name).write_bytes(b"")
    for name in names[:2]:
        os.utime(folder / name, (1e9, 1e9))
    path = build._build("inference", build._compiler())
    assert set(folder.iterdir()) == {path, folder / "new-2.so"}


def test_processes_that_compile_at_the_same_time_write_to_other_names(monkeypatch):
    names = []

    def compile_beside_another(compiler, unit, target):
        names.append(target)
        if len(names) == 1:
            build._build("inference", compiler)
        target.write_bytes(b"library")

    monkeypatch.setattr(build, "_compile", compile_beside_another)
    path = build._build("inference", build._compiler())
    assert len({*names, path}) == 3
    assert list(path.parent.iterdir()) == [path]


def test_the_files_of_the_cache_are_known_by_name():
    folder = build._build("inference", build._compiler()).parent
    library_files.remember_stall(folder, build._key("compiler", "any"))
    names = [path.name for path in folder.iterdir()]
    for name in (*names, f"training-{'0' * 20}.so", f"new-{'a' * 32}.so"):
        assert re.fullmatch(library_files.LIBRARY_PATTERN, name), name
    assert not re.fullmatch(library_files.LIBRARY_PATTERN, "notes.txt")
