import itertools

import pytest

from elmokit.cli import progress as bars


@pytest.fixture
def clock(monkeypatch):
    """The time that the bar sees; a tenth of a second passes whenever it looks."""
    ticks = itertools.count()
    clock = type("Clock", (), {"now": 0.0})()
    monkeypatch.setattr(bars.time, "monotonic", lambda: clock.now + next(ticks) / 1e6)
    return clock


def lines_of(capsys):
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err.splitlines()


def test_progress_without_a_terminal_writes_lines_with_the_time_left(capsys, clock):
    with bars.progress_bar("training", total=200, log_every_seconds=0) as progress:
        for done in (1, 50, 100, 200):
            clock.now += 30
            progress(done, status=f"loss {done}")
    first, *_, half, last = lines_of(capsys)
    assert first == "training 0% 0 s loss 1"
    assert "training 50% 60 s, about 61 s left loss 100" in half
    assert "training 100%" in last
    assert "left" not in last


def test_lines_are_written_now_and_then(capsys, clock):
    with bars.progress_bar("training", total=200, log_every_seconds=30) as progress:
        for done in range(100):
            clock.now += 1
            progress(done)
    assert len(lines_of(capsys)) == 3


def test_what_a_resumed_job_had_done_before_is_no_part_of_its_pace(capsys, clock):
    with bars.progress_bar("training", total=200, log_every_seconds=0) as progress:
        for done in (100, 101, 120):
            clock.now += 60
            progress(done)
    assert "about 4 min left" in lines_of(capsys)[-1]  # 19 in a minute, 80 are left


def test_a_stage_that_comes_back_goes_on_with_its_clock_and_total(capsys, clock):
    with bars.progress_bar("training", log_every_seconds=0) as progress:
        for stage, done in (("training", 1), ("validating", 10), ("training", 2)):
            progress(done, total=200, description=stage)
            clock.now += 100
        progress(0, total=10, description="validating")
    lines = [line.split(",")[0] for line in lines_of(capsys)]
    assert lines == ["training 0% 0 s", "validating 5% 0 s", "training 1% 3 min",
                     "validating 0% 0 s"]  # fmt: skip


def test_progress_is_silent_on_other_ranks(capsys, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    with bars.progress_bar("training", total=200, log_every_seconds=0) as progress:
        progress(100)
    assert lines_of(capsys) == []


def test_progress_on_a_terminal_draws_one_bar_on_stderr(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with bars.progress_bar("training") as progress:
        progress(5000, total=10_000, status="5,000 words", description="counting words")
        progress(0.25, total=1.0, status="loss 3.1", description="training")
    captured = capsys.readouterr()
    assert captured.out == ""
    last = captured.err[captured.err.rindex("training") :]
    assert "25%" in last
    assert "loss 3.1" in last
    assert "words" not in last
