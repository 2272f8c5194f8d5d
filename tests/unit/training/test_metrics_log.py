"""The log of a run, and going on with it."""

import json

import pytest

from elmokit.training.metrics_log import RunLog, read_log


@pytest.fixture
def path(tmp_path):
    return tmp_path / "metrics.jsonl"


def rows(*steps):
    return [{"step": step, "loss": step / 10} for step in steps]


def write(log, rows):
    for row in rows:
        log.write(row)


def test_rows_come_back_as_written(path):
    write(RunLog(path), rows(1, 2))
    assert read_log(path) == rows(1, 2)


def test_every_row_is_in_the_file_at_once(path):
    log = RunLog(path)
    for step in (1, 2, 3):
        log.write({"step": step})
        assert len(path.read_text().splitlines()) == step


def test_a_resumed_log_drops_what_the_run_will_do_again(path):
    write(RunLog(path), rows(1, 2, 3, 4))
    log = RunLog(path, resume_step=2)
    assert read_log(path) == rows(1, 2)
    log.write({"step": 3, "loss": 7.0})
    assert read_log(path) == [*rows(1, 2), {"step": 3, "loss": 7.0}]


def test_a_row_cut_by_a_kill_is_left_out(path):
    write(RunLog(path), rows(1, 2))
    path.write_text(path.read_text() + '{"step": 3, "lo')
    assert read_log(path) == rows(1, 2)
    write(RunLog(path, resume_step=5), rows(3))
    assert [json.loads(line)["step"] for line in path.read_text().splitlines()] == [1, 2, 3]


def test_a_new_run_starts_the_file_anew(path):
    write(RunLog(path), rows(1, 2))
    RunLog(path)
    assert path.read_text() == ""


def test_no_log_has_no_rows(path):
    assert read_log(path) == []
