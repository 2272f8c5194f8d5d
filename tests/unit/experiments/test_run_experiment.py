"""Whole experiments on data sets of a few sentences."""

import json
import re
import shutil
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from elmokit.errors import ConfigError, InputError
from elmokit.experiments.definitions import TASKS
from elmokit.experiments.report import COUNTS_FILE
from elmokit.experiments.run_experiment import ExperimentOptions, run_experiment
from elmokit.tasks.registry import find_task

from ...builders.experiment_data import write_data, write_vectors
from ...builders.task_models import toy_model

FAST = ("train.epochs=1", "hidden_dims=[6]", "train.patience=1")
NLI = TASKS["nli"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("experiments")
    write_data(folder / "data")
    toy_model().save(folder / "model")
    write_vectors(folder / "vectors.txt")
    return folder


@pytest.fixture
def run(folder, tmp_path):
    def run(name, *, place="out", on_progress=lambda progress: None, **changes):
        settings = {
            "data_dir": folder / "data", "output": tmp_path / place, "seeds": 1,
            "model": str(folder / "model"), "vectors": folder / "vectors.txt",
            "cache_dir": folder / "layers", "command": f"elmokit experiment {name}",
            "tasks": ("nli",) if name == "table1" else (),
        }  # fmt: skip
        if name in ("table1", "figure2", "controls"):
            settings["overrides"] = FAST
        return run_experiment(name, ExperimentOptions(**settings | changes), on_progress)

    return run


def note(messages):
    return lambda progress: messages.append(progress.text) if progress.is_message else None


def test_a_table_of_two_conditions_and_two_shares(run, tmp_path):
    told = []
    report = run("table1", tasks=("ner",), seeds=2, device="cpu", on_progress=note(told))
    assert not report.results["missing"]
    assert "8 runs planned, 0 of them already done" in told[0]
    assert [text[:9] for text in told[1:]] == [f"{n} of 8 ru" for n in range(1, 9)]
    results = json.loads((tmp_path / "out/results.json").read_text("utf-8"))
    values = {(r["condition"], r["share"], r["seed"]): r["value"] for r in results["runs"]}
    assert set(values) == set(product(("static", "elmo"), (1.0, 0.1), (0, 1)))
    assert {run["examples"] for run in results["runs"]} == {22, 2}  # two are held out
    (full, tenth), (change,) = results["comparisons"], results["gain_changes"]
    gains = [values["elmo", 1.0, seed] - values["static", 1.0, seed] for seed in (0, 1)]
    assert full["gain"] == pytest.approx(sum(gains) / 2)
    assert 0 < full["p_value"] <= full["adjusted_p"] <= 1
    assert change["change"] == pytest.approx(tenth["gain"] - full["gain"])
    page = (tmp_path / "out/table.md").read_text("utf-8")
    for words in ("`elmokit experiment table1`", "core", "biLM", "elmokit 0", "| ner |"):
        assert words in page
    for path in (tmp_path / "out/runs").iterdir():
        assert (path / "vectors.txt").read_bytes() == b""  # read from the file of the command
    with np.load(tmp_path / "out" / COUNTS_FILE) as counts:
        assert set(counts) == {one["id"] for one in report.results["runs"]}
        for one in report.results["runs"]:
            score = find_task(one["task"]).score_from_counts(counts[one["id"]].sum(axis=0))
            assert one["value"] == pytest.approx(float(score))


def test_a_diverged_training_is_not_kept_and_not_repeated(run, tmp_path):
    overrides = ("train.epochs=3", "hidden_dims=[6]", "train.learning_rate=1e30")
    for _ in range(2):
        report = run("table1", overrides=overrides, resume=True)
        reasons = [one["reason"] for one in report.results["missing"]]
        assert len(reasons) == 4
        assert all("not finite" in reason for reason in reasons)
    for run_dir in (tmp_path / "out/runs").iterdir():
        assert [path.name for path in run_dir.iterdir()] == ["diverged.json"]


def test_the_learning_rate_is_chosen_on_the_held_out_part_for_all_later_runs(run, tmp_path):
    def rates_of(runs):
        pairs = {(one["condition"], one["config"]["train"]["learning_rate"]) for one in runs}
        assert len(pairs) == len(dict(pairs))  # all runs of a condition have the same
        return dict(pairs)

    told = []
    report = run("table1", tune=True, on_progress=note(told))
    # 2 conditions × 3 rates; one of each three is the run of the table
    assert "8 runs planned" in told[0]
    assert len(told) == 1 + 8
    scores = {"static": {}, "elmo": {}}
    for path in (tmp_path / "out/runs").glob("*/result.json"):
        stored = json.loads(path.read_text("utf-8"))
        if stored["run"]["share"] == 1:
            rate = stored["run"]["metadata"]["config"]["train"]["learning_rate"]
            (epoch,) = stored["result"]["epochs"]
            scores[stored["run"]["condition"]][rate] = epoch["held_out"]
    rates = rates_of(report.results["runs"])
    for condition, by_rate in scores.items():
        assert len(by_rate) == 3
        assert by_rate[rates[condition]] == max(by_rate.values())

    # while further tasks are tuned the finished ones stay in the report
    def stop(progress):
        if "9 of " in progress.text:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run("table1", tasks=("nli", "ner"), tune=True, resume=True, on_progress=stop)
    now = json.loads((tmp_path / "out/results.json").read_text("utf-8"))
    assert [one["id"] for one in now["runs"]] == [one["id"] for one in report.results["runs"]]
    assert {one["run"].split()[0] for one in now["missing"]} == {"ner"}
    # and another experiment uses the rates
    later = run("controls", place="later", tasks=("nli",), rates=tmp_path / "out").results
    assert (later["missing"], later["tuned"]) == ([], True)
    assert str(tmp_path / "out") in later["made"]["learning rates"]
    used = rates_of(later["runs"])
    for name in ("static", "static, at the output too"):
        assert used[name] == rates["static"]
    for name in ("elmo", "untrained biLM", "layer 0"):
        assert used[name] == rates["elmo"]


def test_only_the_same_experiment_is_resumed(run, folder, tmp_path, write):
    def stop(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run("table1", on_progress=stop)
    toy_model(seed=9).save(tmp_path / "other")
    shutil.copytree(folder / "data", tmp_path / "data")
    training = f"data/{NLI.dataset}/train.jsonl"
    write((folder / training).read_text("utf-8") + "\n", name=training)
    others = write((folder / "vectors.txt").read_text("utf-8").replace("lives ", "died "))
    for change, named in (
        ({"model": str(tmp_path / "other")}, "biLM was"),
        ({"vectors": others}, "word vectors was"),
        ({"data_dir": tmp_path / "data"}, r"nli-snli-sample\.data\.train was"),
        ({"tune": True}, "--tune was False and is now True"),
        ({"name": "figure2", "tasks": ("nli",)}, "experiment was 'table1' and is now 'figure2'"),
    ):
        with pytest.raises(ConfigError, match=f"/out/.*{named}"):
            run(**{"name": "table1", "resume": True} | change)

    def second(_):
        with pytest.raises(FileExistsError, match=r"process .*/out"):
            run("table1", resume=True)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run("table1", resume=True, on_progress=second)


@pytest.mark.parametrize(
    ("name", "main"), [("table4", "sense"), ("table5", "f1"), ("table6", "accuracy")]
)
def test_probes_have_a_row_for_each_representation(run, name, main):
    if name == "table6":
        pytest.importorskip("sklearn")
    report = run(name, seeds=2)
    assert not report.results["missing"]
    first, *others = report.results["tables"]
    lines = {row[0]: row for row in first["rows"]}
    assert {"layer 0", "layer 2", "static", "random 0"} <= set(lines)
    assert (lines["layer 1"][-1], lines["random 1"][-1]) == ("1", "2")
    for one in report.results["runs"]:  # no baseline is the value of a run
        scores = one["details"].get("scores", ())
        own = [s[main] for s in scores if re.match(r".* \d|static", s["name"])]
        assert not own or one["value"] == max(own)
    if name == "table4":
        static, *in_context = others[1]["rows"]
        assert len(static[2].split("; ")) == 10
        senses = [re.search(r"\((\w+)\)$", row[1])[1] for row in in_context]
        assert sorted(senses) == ["drama", "game"]
        assert all(query not in nearest for _, query, nearest in in_context)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("table1", {"vectors": None}), ("korean", {"model": None}), ("table6", {"tune": True}),
        ("table6", {"tasks": ("ner",)}), ("table1", {"rates": Path("r"), "tune": True}),
        ("table1", {"device": "gpu"}), ("table1", {"data_dir": Path("none")}),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_refused_before_any_run(run, tmp_path, name, options):
    with pytest.raises((InputError, FileNotFoundError)):
        run(name, **options)
    assert not (tmp_path / "out").exists()
