"""The log of a run, and going on with it."""

import json
import os

import pytest

from elmokit.errors import FormatError
from elmokit.jobs.metrics_log import METRICS_FILE, MetricsLog, read_log


@pytest.fixture
def path(tmp_path):
    return tmp_path / METRICS_FILE


def rows(*steps):
    return [{"step": step, "loss": step / 10} for step in steps]


def write(log, rows):
    for row in rows:
        log.write(row)


def test_every_row_is_in_the_file_at_once_and_comes_back_as_written(path):
    log = MetricsLog(path.parent)
    assert read_log(path) == []
    for number, row in enumerate(rows(1, 2, 3), start=1):
        log.write(row)
        assert read_log(path) == rows(1, 2, 3)[:number]
    log.write({"step": 4, "valid_mean": float("inf")})
    assert read_log(path)[-1]["valid_mean"] is None


def test_a_resumed_log_drops_what_the_run_will_do_again_and_a_new_one_all(path):
    write(MetricsLog(path.parent), rows(1, 2, 3, 4))
    log = MetricsLog(path.parent, resume_step=2)
    log.write({"step": 3, "loss": 7.0})
    assert read_log(path) == [*rows(1, 2), {"step": 3, "loss": 7.0}]
    MetricsLog(path.parent)
    assert path.read_text() == ""


def test_a_log_from_which_nothing_is_dropped_keeps_its_time(path):
    MetricsLog(path.parent).write({"step": 10, "loss": 0.5})
    os.utime(path, (5000, 5000))
    log = MetricsLog(path.parent, resume_step=10)
    assert path.stat().st_mtime == 5000
    log.begin()
    assert path.stat().st_mtime > 5000


def test_a_row_cut_by_a_kill_is_left_out(path):
    write(MetricsLog(path.parent), rows(1, 2))
    path.write_text(path.read_text() + '{"step": 3, "lo')
    assert read_log(path) == rows(1, 2)
    write(MetricsLog(path.parent, resume_step=5), rows(3))
    assert [json.loads(line)["step"] for line in path.read_text().splitlines()] == [1, 2, 3]


@pytest.mark.parametrize("line", ["nonsense", '{"loss": 1.0}', '{"step": "one"}'])
def test_a_damaged_line_is_named(path, line):
    path.write_text(f'{{"step": 1}}\n{line}\n{{"step": 2}}\n')
    with pytest.raises(FormatError, match=r"metrics\.jsonl, line 2"):
        read_log(path)
