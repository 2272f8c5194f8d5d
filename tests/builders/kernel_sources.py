"""C sources of small kernel libraries, which compile in a moment."""

import pytest


def write_library(directory, fields, name="own"):
    """Write a library whose one call has ``fields``."""
    code = f"""
#include <stdint.h>
#include <stdlib.h>
#include "constants.h"
typedef struct {{ float clip; int64_t count; }} part;
typedef struct {{ double unseen; }} inside;
typedef struct {{ {fields} }} own_call;
int64_t elmokit_vector_length(void) {{ return 4; }}
void elmokit_own(own_call *call, int64_t num_threads) {{ if (!call || num_threads < 0) abort(); }}
"""
    (directory / f"{name}.c").write_text(code)


@pytest.fixture
def source_dir(tmp_path, monkeypatch):
    """A directory of C sources of our own, with the constants; and an empty cache."""
    from elmokit.kernels import build

    directory = tmp_path / "c"
    directory.mkdir()
    (directory / "constants.h").write_text(
        "#define ROWS 16 /* at a time */\n#define WIDE (2 * 8)\n"
    )
    monkeypatch.setattr(build, "SOURCE_DIR", directory)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cached = (build.read_interface, build.load_library, build.say_once)
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
