"""Trackers get what a run has logged."""

import json
import signal
import subprocess
import sys
import time

import pytest

from elmokit.errors import FormatError, InputError, MissingExtraError
from elmokit.training import trackers
from elmokit.training.trackers import run_rows, run_settings, track

from ...builders.command_line import start_elmokit

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
    settings = {"config": {"train": {"batch_size": 32}, "softmax": {"num_samples": 64}}}
    (path / "run.json").write_text(json.dumps(settings))
    return path


def test_trackers_get_every_figure_and_the_settings(run_dir):
    assert list(run_rows(run_dir)) == [
        (10, {"tokens": 100, "loss": 9.5, "seconds": 1.0}),
        (20, {"tokens": 200, "loss": 8.25, "seconds": 2.0}),
        (20, {"valid_perplexity": 300.5}),
    ]
    assert run_settings(run_dir) == {"train.batch_size": 32, "softmax.num_samples": 64}


def test_following_gives_new_rows_once_even_those_that_a_resumed_run_repeats(run_dir, monkeypatch):
    path = run_dir / "metrics.jsonl"
    monkeypatch.setattr(trackers, "POLL_SECONDS", 0)
    rows = run_rows(run_dir, follow=True)
    steps = [next(rows)[0] for _ in ROWS]
    path.write_text("".join(json.dumps(row) + "\n" for row in [*ROWS, {"step": 30, "loss": 7.0}]))
    assert [*steps, next(rows)[0]] == [10, 20, 20, 30]


def test_what_is_no_run_is_named(tmp_path):
    with pytest.raises(InputError, match=r"metrics\.jsonl"):
        run_rows(tmp_path)


def test_a_damaged_log_is_named(run_dir):
    (run_dir / "metrics.jsonl").write_text('{"step": 1}\nnonsense\n{"step": 2}\n')
    with pytest.raises(FormatError, match="line 2"):
        list(run_rows(run_dir))


def test_a_missing_library_is_named(run_dir, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard.writer", None)
    with pytest.raises(MissingExtraError, match="tensorboard"):
        track(run_dir)


def test_tensorboard_shows_the_rows(run_dir):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    assert track(run_dir) == 3
    events = accumulator.EventAccumulator(str(run_dir / "tensorboard")).Reload()
    assert [(e.step, e.value) for e in events.Scalars("loss")] == [(10, 9.5), (20, 8.25)]


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
