"""The runners of fuzzing, kills and long use, on a few inputs each."""

import importlib
import sys

import pytest

MODULES = ("common", "bench_memory", "fuzz", "soak", "kills")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked")


@pytest.fixture
def runner(pytestconfig):
    """Import a program of `benchmarks/`."""
    folder = str(pytestconfig.rootpath / "benchmarks")
    sys.path.insert(0, folder)
    yield importlib.import_module
    sys.path.remove(folder)
    for name in MODULES:
        sys.modules.pop(name, None)


@pytest.mark.e2e
def test_threads_forks_and_coroutines_get_the_bits_that_one_alone_gets(runner):
    results = runner("soak").soak_calls(8, 4)
    assert results["passed"]
    assert results["different"].keys() == {
        "one_embedder", "several_embedders", "fork", "asyncio"
    }  # fmt: skip


def test_a_difference_in_one_bit_is_counted(runner):
    import numpy as np

    soak, batches = runner("soak"), [[["a"]], [["b"]]]
    right = [[np.zeros(2)], [np.ones(2)]]
    wrong = {"a": np.zeros(2), "b": np.nextafter(np.ones(2), 2)}
    found = soak.count_different(
        lambda batch: [wrong[batch[0][0]]], batches, right, first=0, number=4
    )
    assert found == 2


@pytest.mark.e2e
def test_a_crash_and_a_bare_exception_are_findings_and_the_rest_goes_on(runner, monkeypatch):
    import os

    from ..builders import fuzz_targets
    from ..builders.damaged_files import Target

    fuzz = runner("fuzz")

    def target(folder):
        (folder / "a.txt").write_text("x" * 50)

        def read():
            length = (folder / "a.txt").stat().st_size
            if length < 20:
                os._exit(7)  # as a library that crashes
            if length > 60:
                raise KeyError("x")

        return Target("toy", folder, read)

    monkeypatch.setitem(fuzz_targets.TARGETS, "toy", target)
    monkeypatch.setitem(sys.modules, "tests.builders.fuzz_targets", fuzz_targets)
    outcome = fuzz.attack("toy", first=0, count=40)
    assert (outcome.inputs, outcome.read > 0) == (40, True)
    assert {what.split(":")[0] for what in outcome.findings} == {"exit 7", "KeyError"}
