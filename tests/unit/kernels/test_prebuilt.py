"""Libraries that came with the package: which one is taken, and when none is."""

import hashlib
import json
import platform
import shutil
from itertools import pairwise

import pytest

from elmokit.kernels import build
from elmokit.kernels.build import VARIANTS, Variant, library_file, load_library, origin

pytestmark = pytest.mark.skipif(build._compiler() is None, reason="no C compiler here")

PLAIN = Variant("plain", "any", "")
QUICK = Variant("quick", "any", "", frozenset({"quick"}))


@pytest.fixture
def folder(small_libraries, tmp_path, monkeypatch):
    """Prebuilt libraries of two variants, of which this processor has the plainer one."""
    path = tmp_path / "prebuilt"
    path.mkdir()
    monkeypatch.setattr(build, "PREBUILT_DIR", path)
    monkeypatch.setattr(build, "VARIANTS", (QUICK, PLAIN))
    monkeypatch.setattr(build.platform, "machine", lambda: "any")
    monkeypatch.setattr(build, "_instructions", lambda: frozenset({"plain"}))
    build._variants_here.cache_clear()
    made = build.find_compiled("inference")
    for variant in (QUICK, PLAIN):
        shutil.copy(made, path / library_file("inference", variant, platform.system()))
    digests = {one.name: hashlib.sha256(one.read_bytes()).hexdigest() for one in path.iterdir()}
    content = {"sources": {"inference": build.source_hash("inference")}, "libraries": digests}
    (path / build.MANIFEST).write_text(json.dumps(content))
    yield path
    build._variants_here.cache_clear()


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("instructions", "name"), [({"plain"}, "plain"), ({"plain", "quick"}, "quick")]
)
def test_the_quickest_that_this_processor_can_run_is_taken_without_a_compiler(
    instructions, name, monkeypatch
):
    monkeypatch.setattr(build, "_compiler", lambda: None)
    monkeypatch.setattr(build, "_instructions", lambda: frozenset(instructions))
    assert load_library("inference") is not None
    assert origin("inference") == f"prebuilt kernels ({name})"


@pytest.mark.parametrize("damage", ["cut", "missing"])
def test_a_damaged_library_is_never_opened(folder, damage, monkeypatch, caplog):
    path = folder / library_file("inference", PLAIN, platform.system())
    path.unlink() if damage == "missing" else path.write_bytes(path.read_bytes()[:5000])
    open_ = build.ctypes.CDLL
    opened = []
    monkeypatch.setattr(build.ctypes, "CDLL", lambda name: opened.append(name) or open_(name))
    assert load_library("inference") is not None
    assert str(path) in caplog.text
    assert str(path) not in opened


def test_a_variant_asks_for_all_that_a_slower_one_needs():
    for machine in {variant.machine for variant in VARIANTS}:
        ordered = [variant for variant in VARIANTS if variant.machine == machine]
        for quicker, slower in pairwise(ordered):
            assert quicker.instructions > slower.instructions
