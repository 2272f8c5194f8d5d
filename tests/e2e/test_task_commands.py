"""`elmokit train`, `evaluate` and `predict`, as a user types them."""

import json
import signal
import subprocess

import pytest

from ..builders.command_line import elmokit, start_elmokit
from ..builders.live_server import until

pytestmark = pytest.mark.e2e


def training(folder, output, *arguments):
    return (
        "train", "sentiment", "--data", folder / "data", "--model", folder / "model",
        "-o", output, "--set", "hidden_dims=[12]", *arguments,
    )  # fmt: skip


@pytest.fixture(scope="module")
def folder(shared):
    if (shared / "trained").exists():  # a worker may come back to this file
        return shared
    elmokit(
        *training(shared, shared / "trained"), "--layer-cache", shared / "layers", "--epochs", 40,
        "--set", "train.patience=40", "--set", "train.learning_rate=0.01",
    )  # fmt: skip
    return shared


def test_raw_text_gets_answers_from_a_file_and_from_standard_input(folder):
    text = folder / "text.txt"
    text.write_text("by the river\n갔다 .\n", encoding="utf-8")
    given = text.read_text("utf-8")
    for done in (
        elmokit("predict", folder / "trained", text),
        elmokit("predict", folder / "trained", "-", given=given),
    ):
        assert done.stdout.splitlines() == ["good\tby the river", "bad\t갔다 ."]
    lines = elmokit("predict", folder / "trained", text, "--json").stdout.splitlines()
    answer = json.loads(lines[1])
    assert (len(lines), answer["text"], answer["label"]) == (2, "갔다 .", "bad")
    assert answer["tokens"][1] == {"text": ".", "start": 3, "end": 4}
    assert answer["probability"] == max(answer["probabilities"].values()) > 0.5


def test_a_training_stopped_by_ctrl_c_says_how_to_go_on_and_does(folder, tmp_path):
    arguments = [
        *training(folder, tmp_path / "run", "--layer-cache", tmp_path / "layers"),
        "--set", "train.patience=100000", "--epochs", 100_000,
    ]  # fmt: skip
    with start_elmokit(*arguments, stderr=subprocess.PIPE) as process:
        until((tmp_path / "run" / "model.safetensors").exists, seconds=120)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "stopping after this update" in said
    assert "--resume" in said
    epochs = len((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()) + 2
    arguments[-1] = epochs
    done = elmokit(*arguments, "--resume", "--json")
    answer = json.loads(done.stdout)
    assert answer["epochs"] == epochs
    assert "--resume" in elmokit(*arguments, expect=2).stderr
