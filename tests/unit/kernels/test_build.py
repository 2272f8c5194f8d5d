import logging
import os
import stat
import subprocess
import sys

import pytest

from elmokit.kernels import build
from elmokit.kernels.build import load_library

needs_compiler = pytest.mark.skipif(build._compiler() is None, reason="no C compiler here")


@pytest.fixture(autouse=True)
def fresh(monkeypatch, tmp_path):
    """An empty cache of libraries, and no memory of what was loaded."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for function in (load_library, build.say_once):
        function.cache_clear()
    yield
    load_library.cache_clear()


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


def test_without_a_compiler_the_log_says_so(monkeypatch, caplog):
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(build, "_compiler", lambda: None)
    assert load_library("inference") is None
    assert "no C compiler found" in caplog.text


def test_for_several_libraries_it_is_said_once(monkeypatch, caplog):
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(build, "_compiler", lambda: None)
    assert load_library("inference") is load_library("training") is None
    assert len(caplog.records) == 1


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
def test_a_damaged_library_is_made_once_more(monkeypatch, tmp_path, caplog):
    path = build._build("inference", build._compiler())
    path.write_bytes(b"cut")
    assert load_library("inference") is not None
    assert str(path) in caplog.text
    assert "compiling it again" in caplog.text
    assert list(path.parent.iterdir()) == [path]


@needs_compiler
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
def test_a_forked_child_computes_too():
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
