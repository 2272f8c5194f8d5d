"""What Python reads out of the C source, and how a library with another layout is refused."""

import ctypes
import dataclasses
import re
from pathlib import Path

import pytest

from elmokit.kernels import build, interface
from elmokit.kernels.build import load_library
from elmokit.kernels.interface import SOURCE_DIR, read_interface

from ...builders.kernel_sources import write_library

needs_compiler = pytest.mark.skipif(build._compiler() is None, reason="no C compiler here")
LIBRARIES = sorted(path.stem for path in SOURCE_DIR.glob("*.c"))
PAGE = Path(__file__).parents[3] / "docs/decisions/0004-compiled-kernels.md"


@pytest.mark.parametrize("name", LIBRARIES)
def test_every_function_of_the_library_is_known(name):
    exported = set(re.findall(r"^void elmokit_(\w+)\(", read_interface(name).source, re.M))
    assert set(read_interface(name).functions) == exported - {"use_openmp"}


def test_structures_are_those_of_the_source(source_dir):
    write_library(
        source_dir, "part p, *parts; const float *x, *y; int64_t n; float bound; void *v;"
    )
    found = read_interface("own")
    call = found.functions["own"]
    assert [name for name, _ in call._fields_] == ["p", "parts", "x", "y", "n", "bound", "v"]
    assert found.pointed[call] == {"parts": "part", "x": "float", "y": "float", "v": "void"}
    assert set(found.structures) == {"part", "own_call"}
    assert found.constants == {"ROWS": 16}
    assert call.bound.offset == 16 + 3 * 8 + 8
    with pytest.raises(AttributeError, match="nonsense"):
        call(nonsense=1)


@pytest.mark.parametrize("field", ["double x;", "int64_t sizes[3];", "unsigned char *x;"])
def test_a_field_that_python_cannot_mirror_is_named(source_dir, field):
    write_library(source_dir, field)
    with pytest.raises(ValueError, match=re.escape(field.rstrip(";"))):
        read_interface("own")


@needs_compiler
def test_a_library_of_this_layout_is_taken(source_dir):
    write_library(source_dir, "part p; const float *x;")
    assert load_library("own") is not None


@needs_compiler
@pytest.mark.parametrize("name", LIBRARIES)
@pytest.mark.parametrize("what", ["field", "constant"])
def test_a_library_of_another_layout_is_refused(name, what):
    library = load_library(name)
    own = read_interface(name)
    own.check(library)
    first = next(iter(own.structures))
    structures, constants = dict(own.structures), dict(own.constants)
    if what == "field":
        (name_of_field, _), *others = own.structures[first]._fields_
        wider = [(name_of_field, ctypes.c_int64 * 9), *others]
        structures[first] = type(first, (ctypes.Structure,), {"_fields_": wider})
    else:
        constants["TILE_ROWS"] += 1
    other = dataclasses.replace(own, structures=structures, constants=constants)
    with pytest.raises(RuntimeError, match=f"{name}.c") as raised:
        other.check(library)
    assert (first if what == "field" else "TILE_ROWS") in str(raised.value)


@needs_compiler
@pytest.mark.parametrize("missing", ["own", "vector_length", "layout"])
def test_a_library_without_a_function_is_refused(source_dir, missing):
    write_library(source_dir, "part p;")
    own = read_interface("own")
    assert own.questions == ("vector_length",)
    library = build._load("own", build._compiler())
    own.check(library)
    hide = type("Hiding", (ctypes.CDLL,), {f"elmokit_{missing}": property(refuse)})
    with pytest.raises(RuntimeError, match=rf"own\.c.*elmokit_{missing}"):
        own.check(hide(library._name))


def refuse(_):
    raise AttributeError("no such symbol")


@needs_compiler
def test_with_another_layout_pytorch_computes(source_dir, monkeypatch, caplog):
    write_library(source_dir, "part p; const float *x;")
    unit = interface.Interface.translation_unit
    monkeypatch.setattr(
        interface.Interface,
        "translation_unit",
        lambda self: unit(self).replace("offsetof(own_call, x)", "1 + offsetof(own_call, x)"),
    )
    assert load_library("own") is None
    assert "offsetof(own_call, x) is 17 in the compiled library, 16 in Python" in caplog.text


def test_no_header_includes_itself_by_another():
    includes = {
        path.name: re.findall(r'#include "(.+)"', path.read_text()) for path in SOURCE_DIR.iterdir()
    }
    left = dict(includes)
    while left:
        leaves = [name for name, needs in left.items() if not set(needs) & set(left)]
        assert leaves, f"a circle among {sorted(left)}"
        for name in leaves:
            del left[name]


def test_the_decision_page_tells_the_size_of_the_sources():
    lines = sum(len(path.read_text().splitlines()) for path in SOURCE_DIR.iterdir())
    stated = re.search(r"fewer than ([\d,]+) lines of C", PAGE.read_text(encoding="utf-8"))
    assert stated is not None
    limit = int(stated[1].replace(",", ""))
    assert 0.8 * limit < lines < limit


@needs_compiler
def test_the_decision_page_tells_the_size_of_the_libraries():
    stated = re.search(r"libraries of less than (\d+) kB each", PAGE.read_text(encoding="utf-8"))
    assert stated is not None
    sizes = [build._build(name, build._compiler()).stat().st_size for name in LIBRARIES]
    assert max(sizes) < 1000 * int(stated[1])
