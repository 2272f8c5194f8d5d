"""The benchmarks' harness: schedule, ratios, tables, counted work; peers and network not needed."""

import importlib
import sys

import pytest

MODULES = (
    "common", "shapes", "texts", "peers", "peers.client", "peers.environments",
    "bench_embed", "bench_train",
)  # fmt: skip


@pytest.fixture(scope="module")
def harness(pytestconfig):
    """Import modules of `benchmarks/` as its programs do."""
    folder = str(pytestconfig.rootpath / "benchmarks")
    sys.path.insert(0, folder)
    yield importlib.import_module
    sys.path.remove(folder)
    for name in MODULES:
        sys.modules.pop(name, None)


def test_programs_take_turns_and_warm_ups_do_not_count(harness):
    ran = []

    def program(name, seconds):
        times = iter(seconds)

        def run():
            ran.append(name)
            return next(times)

        return run

    found = harness("common").alternate(
        {"a": program("a", [9, 1, 2]), "b": program("b", [9, 3, 4])}, repeats=2, warm_ups=1
    )
    assert ran == ["a", "b"] * 3
    assert found == {"a": [1, 2], "b": [3, 4]}


def test_ratios_are_taken_within_a_turn(harness):
    common = harness("common")
    ratio = common.speed_ratio([1.0, 10.0, 1.0], [2.0, 30.0, 4.0])
    assert (ratio.low, ratio.median, ratio.high) == (2.0, 3.0, 4.0)


def test_embedding_cells_compare_with_the_fastest_peer_of_equal_vectors(harness):
    bench = harness("bench_embed")
    seconds = {
        "elmokit fp32": [1.0, 1.0],
        "AllenNLP": [10.0, 12.0],
        "AllenNLP + vocab_to_cache": [2.0, 2.0],
        "simple_elmo": [4.0, 4.0],
        "MiniLM-L6": [0.1, 0.1],
    }
    cell = bench.summarize(seconds, tokens=100)
    assert cell["fastest_peer"] == "simple_elmo"
    assert cell["ratios"]["elmokit fp32"]["AllenNLP"]["median"] == 11.0
    assert cell["tokens_per_second"]["AllenNLP"]["high"] == 10.0
    table = bench.cell_table(cell).splitlines()
    assert table[0] == (
        "| program | tokens/s | lowest–highest | × AllenNLP | × simple_elmo "
        "| × AllenNLP + vocab_to_cache |"
    )
    assert table[2] == "| elmokit fp32 | 100 | 100–100 | 11.0 | 4.0 | 2.0 |"
