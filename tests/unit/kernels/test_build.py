"""Which libraries are loaded, compiled here or prebuilt: whole ones that nobody else wrote."""

import ctypes
import os
import platform
import re
import shutil
import stat
from itertools import pairwise
from unittest.mock import Mock

import pytest

from elmokit.kernels import build
from elmokit.kernels.build import (
    VARIANTS,
    Variant,
    find_compiled,
    library_file,
    load_library,
)

needs_compiler = pytest.mark.skipif(build._compiler() is None, reason="no C compiler here")
pytestmark = pytest.mark.usefixtures("small_libraries")

PLAIN = Variant("plain", "any", "")
QUICK = Variant("quick", "any", "", frozenset({"quick"}))


@pytest.fixture
def opened(monkeypatch):
    """The names of libraries that are opened."""
    names, open_ = [], ctypes.CDLL
    monkeypatch.setattr(build.ctypes, "CDLL", lambda name: names.append(name) or open_(name))
    return names


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
@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no users on this system")
@pytest.mark.parametrize("planted", ["for all", "for a group", "link", "file"])
def test_code_that_others_could_have_written_is_not_loaded(tmp_path, caplog, opened, planted):
    path = find_compiled("inference")
    folder = path.parent
    if planted == "link":
        folder.rename(tmp_path / "elsewhere")
        folder.symlink_to(tmp_path / "elsewhere")
    elif planted == "file":
        path.chmod(0o777)
    else:
        folder.chmod(0o777 if planted == "for all" else 0o770)
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


@pytest.fixture
def prebuilt(small_libraries, tmp_path, monkeypatch):
    """Prebuilt libraries of two variants, of which this processor has the plainer one."""
    path = tmp_path / "prebuilt"
    path.mkdir()
    monkeypatch.setattr(build, "PREBUILT_DIR", path)
    monkeypatch.setattr(build, "VARIANTS", (QUICK, PLAIN))
    monkeypatch.setattr(build.platform, "machine", lambda: "any")
    monkeypatch.setattr(build, "_instructions", lambda: frozenset({"plain"}))
    build._variants_here.cache_clear()
    made = find_compiled("inference")
    for variant in (QUICK, PLAIN):
        shutil.copy(made, path / library_file("inference", variant, platform.system()))
    yield path
    build._variants_here.cache_clear()


@needs_compiler
@pytest.mark.usefixtures("prebuilt")
@pytest.mark.parametrize(
    ("instructions", "name"), [({"plain"}, "plain"), ({"plain", "quick"}, "quick")]
)
def test_the_quickest_that_this_processor_can_run_is_taken_without_a_compiler(
    instructions, name, monkeypatch, opened
):
    monkeypatch.setattr(build, "_compiler", lambda: None)
    monkeypatch.setattr(build, "_instructions", lambda: frozenset(instructions))
    assert load_library("inference") is not None
    assert opened[-1].endswith(f"prebuilt/inference-{name}.so")


def test_a_variant_asks_for_all_that_a_slower_one_needs():
    for machine in {variant.machine for variant in VARIANTS}:
        ordered = [variant for variant in VARIANTS if variant.machine == machine]
        for quicker, slower in pairwise(ordered):
            assert quicker.instructions > slower.instructions
