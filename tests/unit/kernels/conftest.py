"""A small kernel library, which compiles in a moment."""

import pytest

from ...builders.kernel_sources import write_library


@pytest.fixture
def source_dir(tmp_path, monkeypatch):
    """A directory of C sources of our own, with the constants; and an empty cache."""
    from elmokit.kernels import build, interface

    directory = tmp_path / "c"
    directory.mkdir()
    (directory / "constants.h").write_text(
        "#define ROWS 16 /* at a time */\n#define WIDE (2 * 8)\n"
    )
    monkeypatch.setattr(interface, "SOURCE_DIR", directory)
    monkeypatch.setattr(build, "SOURCE_DIR", directory)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cached = (interface.read_interface, build.load_library, build.say_once)
    for function in cached:
        function.cache_clear()
    yield directory
    for function in cached:
        function.cache_clear()


@pytest.fixture
def small_libraries(source_dir):
    """Libraries with the names of the real ones."""
    for name in ("inference", "training"):
        write_library(source_dir, "part p; const float *x;", name)
    return source_dir
