"""Trackers get what a run has logged: the real libraries where they are installed."""

import json
import signal
import subprocess
import sys
import time

import pytest

from elmokit.errors import FormatError, InputError, MissingExtraError
from elmokit.training import trackers
from elmokit.training.trackers import TRACKERS, track

from ...builders.command_line import start_elmokit

ROWS = [
    {"step": 10, "tokens": 100, "loss": 9.5, "seconds": 1.0},
    {"step": 20, "tokens": 200, "loss": 8.25, "seconds": 2.0},
    {"step": 20, "valid_perplexity": 300.5, "valid_state": "warm"},
]
LIBRARIES = {
    "tensorboard": "tensorboard",
    "wandb": "wandb",
    "mlflow": "mlflow",
    "trackio": "trackio",
}


@pytest.fixture
def run_dir(tmp_path):
    path = tmp_path / "a-run"
    path.mkdir()
    (path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    settings = {"config": {"train": {"batch_size": 32}, "softmax": {"num_samples": 64}}}
    (path / "run.json").write_text(json.dumps(settings))
    return path


class Recorder:
    """A tracker that keeps what it gets."""

    def __init__(self, run_dir, settings):
        self.settings, self.rows, self.closed = settings, [], False
        Recorder.last = self

    def log(self, step, figures):
        self.rows.append((step, dict(figures)))

    def close(self):
        self.closed = True


@pytest.fixture
def recorder(monkeypatch):
    monkeypatch.setitem(TRACKERS, "recorder", Recorder)
    return Recorder


def test_a_tracker_gets_every_figure_and_the_settings(run_dir, recorder):
    assert track(run_dir, "recorder") == 3
    found = recorder.last
    assert found.rows[0] == (10, {"tokens": 100, "loss": 9.5, "seconds": 1.0})
    assert found.rows[2] == (20, {"valid_perplexity": 300.5})
    assert found.settings == {"train.batch_size": 32, "softmax.num_samples": 64}
    assert found.closed


def test_following_sends_new_rows_once_even_those_that_a_resumed_run_repeats(
    run_dir, recorder, monkeypatch
):
    path = run_dir / "metrics.jsonl"
    more = iter([[*ROWS[:2], ROWS[1]], [*ROWS, {"step": 30, "loss": 7.0}]])

    def sleep(_):
        rows = next(more, None)
        if rows is None:
            raise KeyboardInterrupt
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))

    monkeypatch.setattr(trackers.time, "sleep", sleep)
    monkeypatch.setattr(trackers, "read_log", None)  # would parse old rows again
    assert track(run_dir, "recorder", follow=True) == 4
    assert [step for step, _ in recorder.last.rows] == [10, 20, 20, 30]
    assert recorder.last.closed


def test_what_is_no_run_is_named(tmp_path, recorder):
    with pytest.raises(InputError, match=r"metrics\.jsonl"):
        track(tmp_path, "recorder")
    with pytest.raises(InputError, match="tensorboard, wandb, mlflow, trackio"):
        track(tmp_path, "excel")


def test_a_damaged_log_is_named(run_dir, recorder):
    (run_dir / "metrics.jsonl").write_text('{"step": 1}\nnonsense\n{"step": 2}\n')
    with pytest.raises(FormatError, match="line 2"):
        track(run_dir, "recorder")


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_missing_library_is_named(run_dir, name, monkeypatch):
    monkeypatch.setitem(sys.modules, LIBRARIES[name], None)
    with pytest.raises(MissingExtraError, match=name):
        track(run_dir, name)


@pytest.mark.parametrize("name", LIBRARIES)
def test_the_real_library_takes_the_rows(run_dir, name, monkeypatch):
    pytest.importorskip(LIBRARIES[name])
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (run_dir / "mlflow").as_uri())
    monkeypatch.setenv("TRACKIO_DIR", str(run_dir / "trackio"))
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("HOME", str(run_dir))
    assert track(run_dir, name) == 3
    if name == "tensorboard":
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        events = EventAccumulator(str(run_dir / "tensorboard")).Reload()
        assert [(e.step, e.value) for e in events.Scalars("loss")] == [(10, 9.5), (20, 8.25)]
    elif name == "mlflow":
        import mlflow

        (found,) = mlflow.search_runs(search_all_experiments=True, output_format="list")
        assert found.data.metrics["loss"] == 8.25
        assert found.data.params["train.batch_size"] == "32"
    elif name == "wandb":
        assert list(run_dir.glob("wandb/offline-run-*/*.wandb"))


def test_the_command_follows_until_it_is_interrupted(run_dir, tmp_path):
    pytest.importorskip("tensorboard")
    waits = tmp_path / "waits"
    before = f"""
import time
from pathlib import Path
from types import SimpleNamespace
from elmokit.training import trackers

def sleep(seconds):
    Path({str(waits)!r}).touch()
    time.sleep(seconds)

trackers.time = SimpleNamespace(sleep=sleep)
"""
    process = start_elmokit(
        "track", run_dir, "tensorboard", "--follow", before=before, stdout=subprocess.PIPE
    )
    deadline = time.monotonic() + 60
    while not waits.exists():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "3 rows" in said
