import itertools

import pytest

from elmokit.cli import progress as bars


@pytest.fixture
def clock(monkeypatch):
    """The time that the bar sees."""
    ticks = itertools.count()
    clock = type("Clock", (), {"now": 0.0})()
    monkeypatch.setattr(bars.time, "monotonic", lambda: clock.now + next(ticks) / 1e6)
    return clock


def lines_of(capsys):
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err.splitlines()


def test_lines_are_written_now_and_then(capsys, clock):
    with bars.progress_bar("training", total=200, log_every_seconds=30) as progress:
        for done in range(100):
            clock.now += 1
            progress(done)
    lines = lines_of(capsys)
    assert len(lines) == 3
    assert lines[-1].startswith("training 44% 89 s, about")


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
