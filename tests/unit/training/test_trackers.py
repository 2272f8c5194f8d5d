"""TensorBoard gets what a run has logged."""

import json

import pytest

from elmokit.training import curves
from elmokit.training.curves import track

from ...builders.command_line import elmokit

ROWS = [
    {"step": 10, "tokens": 100, "loss": 9.5, "seconds": 1.0},
    {"step": 20, "tokens": 200, "loss": 8.25, "seconds": 2.0},
    {"step": 20, "valid_perplexity": 300.5, "valid_state": "warm"},
]


@pytest.fixture
def run_dir(tmp_path):
    path = tmp_path / "a-run"
    path.mkdir()
    (path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    (path / "run.json").write_text(json.dumps({"config": {"train": {"batch_size": 32}}}))
    return path


def scalars(run_dir, name):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = accumulator.EventAccumulator(str(run_dir / "tensorboard")).Reload()
    return [(event.step, event.value) for event in events.Scalars(name)]


def test_tensorboard_shows_the_rows(run_dir):
    pytest.importorskip("tensorboard")
    assert "3 rows" in elmokit("track", run_dir).stdout
    assert scalars(run_dir, "loss") == [(10, 9.5), (20, 8.25)]
    assert scalars(run_dir, "valid_perplexity") == [(20, 300.5)]


def test_following_shows_new_rows_once_until_it_is_interrupted(run_dir, monkeypatch):
    pytest.importorskip("tensorboard")
    more = iter([*ROWS, {"step": 30, "loss": 7.0}])

    def sleep(seconds):
        row = next(more, None)  # first those that a resumed run repeats
        if row is None:
            raise KeyboardInterrupt
        with (run_dir / "metrics.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")

    monkeypatch.setattr(curves.time, "sleep", sleep)
    assert track(run_dir, follow=True) == 4
    assert scalars(run_dir, "loss") == [(10, 9.5), (20, 8.25), (30, 7.0)]
