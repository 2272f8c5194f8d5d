"""`elmokit experiment`, as a user types it; killed and started again."""

import json
import subprocess
import time

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


def test_all_six_tasks_from_the_command_line(folder, tmp_path):
    options = ("--seeds", 1, "--set", "hidden_dims=[8]", "-o")
    done = elmokit(*experiment(folder, "table1", *options, tmp_path / "out/table1"), "--json")
    report = json.loads(done.stdout)
    assert report["missing"] == []
    tasks = {run["task"] for run in report["runs"]}
    assert tasks == {"ner", "srl", "sentiment", "nli", "qa", "coref"}
    assert "24 runs planned" in done.stderr
    assert report["made"]["command"].startswith("`elmokit experiment ")
    assert " table1 --seeds 1 " in report["made"]["command"]
    figure = elmokit(*experiment(folder, "figure2", *options, tmp_path / "out/figure2"))
    assert "6 runs planned, 6 of them already done" in figure.stderr
    assert (tmp_path / "out/figure2/plot.png").stat().st_size > 1000
    assert "# Figure 2" in figure.stdout


def test_killed_and_started_again(folder, tmp_path):
    arguments = ("figure1", "--tasks", "ner", "--seeds", 1, "-o", tmp_path / "killed/figure1")
    process = start_elmokit(
        *experiment(folder, *arguments), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    runs = tmp_path / "killed/runs"
    until = time.monotonic() + 120
    while time.monotonic() < until and len(list(runs.glob("[0-9a-f]*/result.json"))) < 3:
        time.sleep(0.005)
    process.kill()
    process.wait()
    num_done = len(list(runs.glob("[0-9a-f]*/result.json")))
    assert 3 <= num_done < 12
    again = elmokit(*experiment(folder, *arguments), "--json")
    assert f"12 runs planned, {num_done} of them already done" in again.stderr
    whole = elmokit(*experiment(folder, *arguments[:-1], tmp_path / "whole/figure1"), "--json")
    values = [
        [(run["id"], run["value"]) for run in json.loads(done.stdout)["runs"]]
        for done in (again, whole)
    ]
    assert len(values[0]) == 12
    assert values[0] == values[1]
    assert (tmp_path / "killed/figure1/plot.png").exists()


def test_wrong_input_has_exit_code_2(folder, tmp_path):
    done = elmokit(*experiment(folder, "table9"), expect=2)
    assert "choose one of table1" in done.stderr
    elsewhere = ("--data", tmp_path, "-o", tmp_path / "out")
    done = elmokit(*experiment(folder, "table1", *elsewhere), expect=2)
    assert str(tmp_path / "ner-en-uner-ewt") in done.stderr
