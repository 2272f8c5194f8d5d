"""The benchmarks' harness: schedule, ratios, tables, counted work; peers and network not needed."""

import importlib
import json
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


def test_training_compares_with_peers_and_with_fp32(harness):
    bench = harness("bench_train")
    seconds = {
        "elmokit fp32": [2.0],
        "elmokit bf16": [1.0],
        "plain nn.LSTM stack": [20.0],
    }
    found = bench.summarize(seconds, tokens=40)
    assert found["ratios"]["elmokit bf16"]["elmokit fp32"]["median"] == 2.0
    assert found["ratios"]["elmokit fp32"]["plain nn.LSTM stack"]["median"] == 10.0
    assert "| elmokit bf16 | 40 | 40–40 | 20.0 | – | – | 2.0 |" in bench.shape_table(found)


def test_results_name_command_and_hardware_without_places_of_this_machine(
    harness, tmp_path, monkeypatch
):
    monkeypatch.setattr(sys, "argv", ["benchmarks/bench_x.py", "--text", str(tmp_path / "a.txt")])
    description = harness("common").describe("x", {}, {})
    assert description["command"] == "python benchmarks/bench_x.py --text a.txt"
    assert description["hardware"]["cores"] > 0
    assert json.dumps(description)


def test_texts_are_cut_and_repeated(harness):
    texts = harness("texts")
    text = [["a", "b", "c"], ["d"]]
    assert texts.take_words(text, 6) == [["a", "b", "c"], ["d"], ["a", "b"]]
    assert texts.batches(text, 2, 3) == [[["a", "b", "c"], ["d"]], [["a", "b", "c"]]]
    assert texts.num_tokens([text]) == 8


def test_an_environment_that_was_not_made_is_named_with_what_makes_it(harness, tmp_path):
    environments = harness("peers.environments")
    with pytest.raises(FileNotFoundError, match=r"'allennlp'.*--make-environments"):
        environments.environment_python("allennlp", tmp_path)
    marker = tmp_path / "allennlp" / "requirements.json"
    marker.parent.mkdir()
    marker.write_text(json.dumps([["torch==1.0"]]), encoding="utf-8")
    with pytest.raises(FileNotFoundError):
        environments.environment_python("allennlp", tmp_path)
    marker.write_text(json.dumps(environments.ENVIRONMENTS["allennlp"]), encoding="utf-8")
    python = environments.environment_python("allennlp", tmp_path)
    assert python == tmp_path / "allennlp" / "bin" / "python"


@pytest.fixture
def tiny_model(harness, tmp_path):
    return harness("shapes").model_folder("tiny", tmp_path)


@pytest.mark.slow
def test_all_programs_of_this_environment_give_the_same_vectors(harness, tiny_model, tmp_path):
    bench = harness("bench_embed")
    options = bench.argparse.Namespace(
        only=["elmokit fp32", "plain", "AllenNLP"], environments=tmp_path, threads=1, ours=[]
    )
    programs = bench.Programs(options, tiny_model, max_batch=2)
    try:
        assert set(programs.workers) == {"elmokit fp32", "plain nn.LSTM stack"}
        assert "--make-environments" in programs.skipped["AllenNLP"]
        sentences = [["a", "bank", "of", "the", "river"], ["배"]]
        differences = programs.differences(sentences)
        assert differences["plain nn.LSTM stack"] < 2e-5
        cell = bench.measure_cell(programs, [sentences], repeats=1)
        assert cell["tokens"] == 10
        assert set(cell["tokens_per_second"]) == set(programs.workers)
    finally:
        harness("peers.client").close_all(list(programs.workers.values()))


@pytest.mark.slow
def test_a_program_that_fails_says_why(harness, tmp_path):
    client = harness("peers.client")
    from pathlib import Path

    worker = client.Worker(Path(sys.executable), "plain_embed.py", threads=1)
    try:
        with pytest.raises(client.PeerError, match=r"options\.json"):
            worker.ask("load", folder=str(tmp_path), threads=1, max_batch=1, settings={})
    finally:
        worker.close()
