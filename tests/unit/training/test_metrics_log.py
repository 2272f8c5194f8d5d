"""The log of a run, and going on with it."""

import json
import os

import pytest

from elmokit.errors import FormatError
from elmokit.training import metrics_log
from elmokit.training.metrics_log import GrowingLog, RunLog, read_log


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


def test_a_log_from_which_nothing_is_dropped_keeps_its_time(path):
    RunLog(path).write({"step": 10, "loss": 0.5})
    os.utime(path, (5000, 5000))
    log = RunLog(path, resume_step=10)
    assert path.stat().st_mtime == 5000
    log.begin()
    assert path.stat().st_mtime > 5000
    RunLog(path, resume_step=9)
    assert path.read_bytes() == b""


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


class TestGrowing:
    def test_each_line_is_parsed_once_and_only_when_it_is_complete(self, path, monkeypatch):
        parse, parsed = metrics_log._row, []

        def noting(line, path, number):
            parsed.append(number)
            return parse(line, path, number)

        monkeypatch.setattr(metrics_log, "_row", noting)
        growing = GrowingLog(path)
        assert growing.new_rows() == []
        log = RunLog(path)
        write(log, rows(1, 2))
        assert growing.new_rows() == rows(1, 2)
        with path.open("a", encoding="utf-8") as file:
            file.write('{"step": 3,')
            file.flush()
            assert growing.new_rows() == []
            file.write(' "loss": 0.3}\n')
        write(log, rows(4))
        assert growing.new_rows() == rows(3, 4)
        assert growing.new_rows() == []
        assert parsed == [1, 2, 3, 4]

    @pytest.mark.parametrize("resume_step", [0, 1, 3])
    def test_what_a_resumed_run_writes_is_read(self, path, resume_step):
        write(RunLog(path), rows(1, 2, 3, 4))
        growing = GrowingLog(path)
        growing.new_rows()
        log = RunLog(path, resume_step=resume_step)
        again = [{"step": step, "loss": 7.0} for step in range(resume_step + 1, 9)]
        write(log, again)
        assert growing.new_rows()[resume_step:] == again

    def test_a_damaged_line_is_named(self, path):
        write(RunLog(path), rows(1, 2))
        growing = GrowingLog(path)
        growing.new_rows()
        path.write_text(path.read_text() + "nonsense\n")
        with pytest.raises(FormatError, match=r"metrics\.jsonl, line 3"):
            growing.new_rows()
