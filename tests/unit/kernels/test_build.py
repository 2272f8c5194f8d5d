import logging
import os
import stat
import subprocess
import sys
import time

import pytest

from elmokit.kernels import build, library_files
from elmokit.kernels.build import load_library

needs_compiler = pytest.mark.skipif(build._compiler() is None, reason="no C compiler here")


pytestmark = pytest.mark.usefixtures("small_libraries")


@needs_compiler
def test_a_library_is_compiled_once(monkeypatch, tmp_path):
    assert load_library("inference") is not None
    (made,) = (tmp_path / "elmokit" / "native").iterdir()
    load_library.cache_clear()
    monkeypatch.setattr(build, "_compile", lambda *_: pytest.fail("compiled again"))
    assert load_library("inference") is not None
    assert made.name.startswith("inference-")


def test_the_switch_turns_it_off(monkeypatch, caplog):
    caplog.set_level(logging.INFO)
    monkeypatch.setenv(build.SWITCH, "0")
    assert load_library("inference") is None
    assert "ELMOKIT_NATIVE=0" in caplog.text


def test_without_a_compiler_the_log_says_so_once(monkeypatch, caplog):
    monkeypatch.setattr(build, "_compiler", lambda: None)
    assert load_library("inference") is None
    assert load_library("training") is None
    (record,) = caplog.records
    assert "no C compiler found" in record.getMessage()
    assert record.levelname == "WARNING"


def test_a_compiler_that_fails_is_quoted(monkeypatch, tmp_path, caplog):
    compiler = tmp_path / "cc"
    compiler.write_text("#!/bin/sh\necho 'no such instruction' >&2\nexit 1\n")
    compiler.chmod(compiler.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setenv("CC", str(compiler))
    assert load_library("inference") is None
    assert "PyTorch computes everything" in caplog.text
    assert "no such instruction" in caplog.text


@needs_compiler
def test_a_cache_that_cannot_be_written_is_no_obstacle(monkeypatch, tmp_path, caplog):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    assert load_library("inference") is None
    assert "could not be built" in caplog.text


@needs_compiler
def test_another_library_under_the_name_is_refused(monkeypatch, caplog):
    """Its digest is right, so it is no accident; it lacks what Python calls."""
    compile_ = build._compile
    monkeypatch.setattr(build, "_compile", lambda cc, _, path: compile_(cc, "int other;", path))
    assert load_library("inference") is None
    assert "inference.c: the compiled library has no elmokit_layout" in caplog.text


@needs_compiler
def test_what_cannot_be_mapped_is_not_compiled_again(monkeypatch, caplog):
    """As on a file system mounted with noexec."""

    def refuse(path):
        raise OSError(f"{path}: failed to map segment from shared object")

    monkeypatch.setattr(build.ctypes, "CDLL", refuse)
    assert load_library("inference") is None
    load_library.cache_clear()
    monkeypatch.setattr(build, "_compile", lambda *_: pytest.fail("compiled again"))
    assert load_library("inference") is None
    assert caplog.text.count("failed to map segment") == 1


@pytest.fixture
def stalling_compiler(monkeypatch, tmp_path):
    """A compiler that hangs in a child process; the file lists the children."""
    compiler, children = tmp_path / "cc", tmp_path / "children"
    compiler.write_text(f"#!/bin/sh\nsleep 600 &\necho $! >> {children}\nwait\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    monkeypatch.setattr(build, "COMPILER_SECONDS", 2)
    return children


def test_a_compiler_that_hangs_is_stopped_and_not_tried_at_every_command(
    stalling_compiler, tmp_path, caplog
):
    for name in ("inference", "training", "inference"):
        assert load_library(name) is None
        load_library.cache_clear()
    (child,) = stalling_compiler.read_text().split()
    assert is_gone(int(child))
    (marker,) = (tmp_path / "elmokit" / "native").iterdir()
    assert caplog.text.count("did not finish within 2 s") == 1
    assert f"remove {marker}" in caplog.text


@pytest.mark.parametrize("age", [library_files.STALL_SECONDS + 60, -60], ids=["old", "future"])
def test_it_is_tried_again_later_and_when_the_clock_was_set_back(stalling_compiler, tmp_path, age):
    assert load_library("inference") is None
    load_library.cache_clear()
    (marker,) = (tmp_path / "elmokit" / "native").iterdir()
    written = time.time() - age
    os.utime(marker, (written, written))
    assert load_library("inference") is None
    assert len(stalling_compiler.read_text().split()) == 2
    assert time.time() - marker.stat().st_mtime < 30


def is_gone(process):
    """Wait until a process has ended; of one that nobody waits for, only the entry is left."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        status = subprocess.run(
            ["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True, check=False
        ).stdout.strip()
        if status in ("", "Z"):
            return True
        time.sleep(0.05)
    return False


def test_without_a_home_the_log_says_what_to_set(monkeypatch, caplog):
    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(build.Path, "home", no_home)
    monkeypatch.setattr(build, "_compiler", lambda: (sys.executable,))
    assert load_library("inference") is None
    assert "Could not determine home directory. Set XDG_CACHE_HOME" in caplog.text


def test_the_compiler_may_have_arguments(monkeypatch):
    monkeypatch.setenv("CC", f"'{sys.executable}' -E")
    assert build._compiler() == (sys.executable, "-E")


def test_a_compiler_that_is_not_there_is_named(monkeypatch, caplog):
    monkeypatch.setenv("CC", "no-such-compiler -m64")
    monkeypatch.setattr(build.shutil, "which", {"gcc": "/usr/bin/gcc"}.get)
    assert build._compiler() == ("/usr/bin/gcc",)
    assert "CC=no-such-compiler -m64 is not found" in caplog.text


@needs_compiler
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_computes_too(monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME")
    code = """
import os, torch
from elmokit.kernels.inference import load_kernels
from elmokit.kernels.layers import PackedLinear
torch.set_num_threads(2)
weight = torch.eye(100)
linear = PackedLinear(load_kernels(), weight, torch.zeros(100), "fp32")
x = torch.ones(50, 100)
assert torch.equal(linear(x, torch.empty(50, 100)), x)
child = os.fork()
if child == 0:
    load_kernels.cache_clear()
    again = PackedLinear(load_kernels(), weight, torch.zeros(100), "fp32")
    same = all(torch.equal(one(x, torch.empty(50, 100)), x) for one in (linear, again))
    os._exit(0 if same else 3)
assert os.waitpid(child, 0)[1] == 0
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
