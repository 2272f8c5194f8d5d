"""Which libraries are compiled and loaded: whole ones that nobody else could have written."""

import ctypes
import os
import re
import stat
from unittest.mock import Mock

import pytest

from elmokit.kernels import build
from elmokit.kernels.build import find_compiled, load_library

needs_compiler = pytest.mark.skipif(build._compiler() is None, reason="no C compiler here")
pytestmark = pytest.mark.usefixtures("small_libraries")

DAMAGES = {
    "cut": lambda content: content[: len(content) // 2],
    "zeroed": lambda content: content[:4096] + bytes(len(content) - 4096),
    "empty": lambda content: b"",
    "one bit": lambda content: content[:9000] + bytes([content[9000] ^ 1]) + content[9001:],
}


@needs_compiler
def test_a_library_is_compiled_once_and_is_private_whatever_the_umask(monkeypatch, tmp_path):
    before = os.umask(0)
    try:
        assert load_library("inference") is not None
    finally:
        os.umask(before)
    folder = tmp_path / "elmokit" / "native"
    (library,) = folder.iterdir()
    for path in (folder, library):
        assert not stat.S_IMODE(path.stat().st_mode) & 0o022
    for name in (library.name, f"training-{'0' * 20}.so", f"new-{'a' * 32}.so"):
        assert re.fullmatch(build.LIBRARY_PATTERN, name), name
    assert not re.fullmatch(build.LIBRARY_PATTERN, "notes.txt")
    load_library.cache_clear()
    monkeypatch.setattr(build, "_compile", lambda *_: pytest.fail("compiled again"))
    assert load_library("inference") is not None


@needs_compiler
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=list(DAMAGES))
def test_a_damaged_library_is_never_loaded_but_made_once_more(caplog, damage):
    path = find_compiled("inference")
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    assert load_library("inference") is not None
    assert f"{path} is damaged: compiling it again" in caplog.text
    assert list(path.parent.iterdir()) == [path]
    assert path.read_bytes() == whole


@needs_compiler
@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no users on this system")
@pytest.mark.parametrize("planted", ["for all", "for a group", "link", "file"])
def test_code_that_others_could_have_written_is_not_loaded(monkeypatch, tmp_path, caplog, planted):
    path = find_compiled("inference")
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


@pytest.mark.parametrize("problem", ["no compiler", "refuses", "blocked cache", "no home"])
def test_what_stands_in_the_way_is_said_once(problem, monkeypatch, tmp_path, caplog):
    compiler = tmp_path / "cc"
    compiler.write_text("#!/bin/sh\necho 'no such instruction' >&2; exit 1\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    expected = "no such instruction"
    if problem == "no compiler":
        monkeypatch.setattr(build, "_compiler", lambda: None)
        expected = "no C compiler found"
    elif problem == "blocked cache":
        (tmp_path / "file").write_text("")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
        expected = str(tmp_path / "file")
    elif problem == "no home":
        monkeypatch.delenv("XDG_CACHE_HOME")
        monkeypatch.setattr(build.Path, "home", Mock(side_effect=RuntimeError))
        expected = "Set XDG_CACHE_HOME"
    assert load_library("inference") is None
    assert load_library("training") is None
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert expected in record.getMessage()
    assert "computed more slowly" in record.getMessage()
