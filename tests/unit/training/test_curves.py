"""Plots of a run, and its figures in TensorBoard."""

import json
import os
import time

import pytest

from elmokit.errors import FormatError, InputError
from elmokit.training import curves
from elmokit.training.curves import check_picture_name, check_run_dir, plot_run, read_training_run

from ...builders.command_line import elmokit

ROWS = [
    {"step": 1, "loss": 5.0, "forward_loss": 4.0},
    {"step": 2, "loss": 2.5, "forward_loss": 2.0, "seconds": 1.5},
    {"step": 2, "valid_forward": 90.0, "valid_mean": 84.5, "valid_state": "warm"},
]


@pytest.fixture
def run_dir(tmp_path):
    path = tmp_path / "a-run"
    path.mkdir()
    (path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    (path / "run.json").write_text(json.dumps({"config": {"train": {"batch_size": 32}}}))
    return path


def test_damaged_files_are_named(run_dir):
    for content in ('{"in_domain": 3}', '{"in_domain": {"mean": "much"}}', "[]", "{", ""):
        (run_dir / "before.json").write_text(content)
        with pytest.raises(FormatError, match=r"before\.json"):
            read_training_run(run_dir)


def test_a_run_of_another_command_is_no_training(run_dir):
    (run_dir / "run.json").write_text('{"command": "experiment", "config": {}}')
    with pytest.raises(InputError, match="a run of `elmokit experiment`"):
        check_run_dir(run_dir)


BEGINNINGS = {"png": b"\x89PNG", "PDF": b"%PDF", "svg": b"<?xml"}


@pytest.mark.parametrize("suffix", BEGINNINGS)
def test_a_plot_has_losses_perplexities_and_the_models_to_beat(run_dir, suffix):
    pytest.importorskip("matplotlib")
    (run_dir / "before.json").write_text('{"in_domain": {"mean": 300.5}}')
    (run_dir / "after.json").write_text('{"in_domain": {"mean": null}}')
    path = run_dir / f"plot.{suffix}"
    run = plot_run(run_dir, path)
    assert (run.before, run.after) == ({"in_domain": 300.5}, {"in_domain": None})
    assert len(run.rows) == 3
    assert path.read_bytes().startswith(BEGINNINGS[suffix])
    if suffix == "svg":
        for text in (b"before fine-tuning", b"held-out perplexity"):
            assert b"<!-- " + text + b" -->" in path.read_bytes()  # text is drawn as paths
    with pytest.raises(InputError, match=r"\.png"):
        check_picture_name(path.with_suffix(".gif"))


@pytest.mark.parametrize(
    ("log", "model", "is_running"),
    [
        (0, None, True), (3600, None, False), (0, 0, False), (3600, 3600, False),
        (0, 30, False),  # copied
        (0, 120, True),
        (0, 3600, True),  # finished then, and resumed with another limit
    ],
)  # fmt: skip
def test_a_run_goes_on_while_its_log_is_newer_than_its_model(run_dir, log, model, is_running):
    for name, age in (("metrics.jsonl", log), ("config.json", model)):
        if age is not None:
            (run_dir / name).touch()
            os.utime(run_dir / name, (time.time() - age,) * 2)
    assert read_training_run(run_dir).is_running is is_running


def test_tensorboard_shows_new_rows_once_until_it_is_interrupted(run_dir, monkeypatch):
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    more = [*ROWS, {"step": 30, "loss": 7.0}]  # first those that a resumed run repeats

    def sleep(seconds):
        if not more:
            raise KeyboardInterrupt
        with (run_dir / "metrics.jsonl").open("a") as file:
            file.write(json.dumps(more.pop(0)) + "\n")

    monkeypatch.setattr(curves.time, "sleep", sleep)
    assert "4 rows" in elmokit("track", run_dir, "--follow").stdout
    losses = events.EventAccumulator(str(run_dir / "tensorboard")).Reload().Scalars("loss")
    assert [(event.step, event.value) for event in losses] == [(1, 5.0), (2, 2.5), (30, 7.0)]
