"""`elmokit experiment`, as a user types it; killed and started again."""

import json
import subprocess

import pytest

from ..builders.command_line import elmokit, start_elmokit
from ..builders.experiment_data import write_data, write_vectors
from ..builders.task_models import toy_model

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("experiment")
    write_data(folder / "data", num_train=60, num_dev=30)
    toy_model().save(folder / "model")
    write_vectors(folder / "vectors.txt")
    return folder


def experiment(folder, *arguments):
    return (
        "experiment", "--data", folder / "data", "--model", folder / "model",
        "--vectors", folder / "vectors.txt", "--layer-cache", folder / "layers",
        "--set", "train.epochs=2", "--set", "train.patience=2", "--threads", "1", *arguments,
    )  # fmt: skip


OPTIONS = ("--seeds", 1, "--set", "hidden_dims=[8]", "-o")


@pytest.fixture(scope="module")
def table(folder):
    """Table 1 with all six tasks: the finished command."""
    output = folder / "out/table1"
    return elmokit(*experiment(folder, "table1", *OPTIONS, output), "--json")


def test_all_six_tasks_from_the_command_line(folder, table):
    report = json.loads(table.stdout)
    assert report["missing"] == []
    tasks = {run["task"] for run in report["runs"]}
    assert tasks == {"ner", "srl", "sentiment", "nli", "qa", "coref"}
    assert "24 runs planned" in table.stderr
    assert report["made"]["command"].startswith("`elmokit experiment ")
    assert " table1 --seeds 1 " in report["made"]["command"]
    assert (folder / "out/table1/table.md").read_text("utf-8").startswith("# Table 1")


def test_killed_and_started_again(folder, table, tmp_path):
    arguments = ("table1", "--tasks", "ner", *OPTIONS, tmp_path / "killed")
    before = """
import os, signal
from elmokit.experiments import run_experiment
write = run_experiment.write_result
def once(*arguments):
    write(*arguments)
    os.kill(os.getpid(), signal.SIGKILL)
run_experiment.write_result = once
"""
    process = start_elmokit(
        *experiment(folder, *arguments), before=before,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert process.wait(120) != 0
    runs = tmp_path / "killed/runs"
    assert len(list(runs.glob("[0-9a-f]*/result.json"))) == 1
    refused = elmokit(*experiment(folder, *arguments), expect=2)
    assert "Add --resume" in refused.stderr
    again = elmokit(*experiment(folder, *arguments, "--resume"), "--json")
    assert "4 runs planned, 1 of them already done" in again.stderr
    values, whole = (
        {run["id"]: run["value"] for run in json.loads(done.stdout)["runs"] if run["task"] == "ner"}
        for done in (again, table)
    )
    assert len(values) == 4
    assert values == whole
