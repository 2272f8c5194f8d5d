"""Wheels with compiled kernels: their libraries compute the same on every platform."""

import importlib.util
import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from elmokit.kernels.interface import SOURCE_DIR
from elmokit.kernels.prebuilt import VARIANTS, library_file

from ..builders import kernel_sources

SPEC = importlib.util.spec_from_file_location(
    "build_wheels", Path(__file__).parents[2] / "recipes/build_wheels.py"
)
build_wheels = sys.modules["build_wheels"] = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(build_wheels)
PLATFORMS, compile_library = build_wheels.PLATFORMS, build_wheels.compile_library
PROGRAM = Path(__file__).parents[1] / "builders/run_library.c"
RUNNERS = {
    "linux-x86_64": (),
    "linux-aarch64": ("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"),
    "windows-x86_64": ("wine",),
}
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="wheels are built on Linux")


def needs(*programs):
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")


def variants(key):
    own = [one for one in VARIANTS if one.machine == PLATFORMS[key].machine]
    return own[-2:]  # what any builder's processor can run


def run_library(key, variant, folder):
    """Build the library and a program that calls it; return what it prints."""
    target = PLATFORMS[key]
    path = folder / library_file("training", variant, target.system)
    compile_library("training", variant.flags, target, path)
    program = folder / "run.exe"
    command = [
        *target.compiler,
        "-O1",
        "-w",
        "-pthread",
        "-I",
        SOURCE_DIR,
        PROGRAM,
        "-o",
        program,
        "-lm",
    ]
    subprocess.run(command, check=True)
    where = f"Z:{path}" if target.system == "Windows" else path
    done = subprocess.run(
        [*RUNNERS[key], program, where], capture_output=True, text=True, timeout=240, check=False,
        env={"PATH": "/usr/bin:/bin", "WINEPREFIX": str(folder / "wine"), "WINEDEBUG": "-all",
             "WINEDLLOVERRIDES": "mscoree,mshtml="},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return np.array(done.stdout.split(), dtype=np.float64)


@pytest.mark.parametrize("key", PLATFORMS)
def test_a_library_computes_the_same_on_every_platform(key, tmp_path):
    needs(PLATFORMS["linux-x86_64"].compiler[0], PLATFORMS[key].compiler[0], *RUNNERS[key][:1])
    for folder in ("here", "there"):
        (tmp_path / folder).mkdir()
    expected = run_library("linux-x86_64", variants("linux-x86_64")[-1], tmp_path / "here")
    assert len(expected) > 1000
    assert np.isfinite(expected).all()
    found = run_library(key, variants(key)[0], tmp_path / "there")
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


source_dir, small_libraries = kernel_sources.source_dir, kernel_sources.small_libraries


@pytest.fixture
def small_sources(small_libraries, monkeypatch):
    """The wheels' libraries compile in a moment."""
    monkeypatch.setattr(build_wheels, "SOURCE_DIR", small_libraries)


@pytest.mark.usefixtures("small_sources")
def test_a_library_that_needs_a_newer_c_library_is_refused(tmp_path, monkeypatch):
    target = PLATFORMS["linux-x86_64"]
    needs(target.compiler[0], target.readelf)
    path = tmp_path / "library.so"
    monkeypatch.setattr(build_wheels, "OLDEST_GLIBC", (2, 1))
    with pytest.raises(RuntimeError, match=r"library\.so needs .*glibc"):
        compile_library("training", variants("linux-x86_64")[0].flags, target, path)


@pytest.mark.usefixtures("small_sources")
def test_a_wheel_has_the_libraries_and_a_record_of_all_its_files(tmp_path, monkeypatch):
    monkeypatch.setattr(build_wheels, "VARIANTS", VARIANTS[-2:])
    target = PLATFORMS["linux-x86_64"]
    needs(target.compiler[0], target.readelf)
    plain = tmp_path / "elmokit-1-py3-none-any.whl"
    metadata = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    with zipfile.ZipFile(plain, "w") as wheel:
        wheel.writestr("elmokit/__init__.py", "")
        wheel.writestr("elmokit/data/models/en/model.safetensors", "large")
        wheel.writestr("elmokit-1.dist-info/WHEEL", metadata)
        wheel.writestr("elmokit-1.dist-info/RECORD", "")
    files = build_wheels.compile_kernels(target)
    path = build_wheels.add_kernels(plain, tmp_path, target, files, models=False)
    assert path.name == "elmokit-1-py3-none-manylinux_2_28_x86_64.whl"
    with zipfile.ZipFile(path) as wheel:
        names = wheel.namelist()
        record = wheel.read("elmokit-1.dist-info/RECORD").decode().splitlines()
        manifest = json.loads(wheel.read("elmokit/kernels/prebuilt/manifest.json"))
        assert b"Tag: py3-none-manylinux_2_28_x86_64\n" in wheel.read("elmokit-1.dist-info/WHEEL")
    assert sorted(line.split(",")[0] for line in record) == sorted(names)
    assert not any("models" in name for name in names)
    names = [library_file(name, VARIANTS[-2], "Linux") for name in build_wheels.LIBRARIES]
    assert sorted(manifest["libraries"]) == sorted(names)
    assert build_wheels.compile_kernels(target) == files  # the same bytes again
