from types import SimpleNamespace

from elmokit.cli import progress as bars


def test_progress_without_a_terminal_writes_lines_now_and_then(capsys):
    with bars.progress_bar("training", total=200, log_every_seconds=0) as progress:
        progress(100, status="loss 3.2")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "training 50%" in captured.err
    assert "loss 3.2" in captured.err


def test_progress_elsewhere_tells_the_time_left(capsys, monkeypatch):
    clock = iter([0.0, 30.0, 60.0, 90.0, 200.0])
    monkeypatch.setattr(bars, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    update = bars.Progress("training", None, bars._line_writer("training", 0))
    update(1, total=200)  # too little to say when it ends
    update(50)
    update(100, status="loss 3.2")
    update(200)
    assert capsys.readouterr().err.splitlines() == [
        "training 0% 30 s",
        "training 25% 60 s, about 92 s left",
        "training 50% 90 s, about 61 s left loss 3.2",
        "training 100% 3 min",
    ]


def test_the_time_left_of_a_resumed_job_counts_what_this_call_did(capsys, monkeypatch):
    clock = iter([0.0, 10.0, 70.0, 130.0])
    monkeypatch.setattr(bars, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    update = bars.Progress("training", 200, bars._line_writer("training", 0))
    update(100)
    update(101)
    update(120)
    assert capsys.readouterr().err.splitlines() == [
        "training 50% 10 s",
        "training 50% 70 s",  # 101 of 200
        "training 60% 2 min, about 6 min left",
    ]


def test_another_stage_begins_its_own_clock_and_total(capsys, monkeypatch):
    clock = iter([0.0, 60.0, 90.0, 120.0])
    monkeypatch.setattr(bars, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    update = bars.Progress("training", None, bars._line_writer("training", 0))
    update(4000, total=8000, description="counting words")
    update(0, description="training")
    update(0.5, total=1.0, description="training")
    assert capsys.readouterr().err.splitlines() == [
        "counting words 50% 0 s",
        "training 0 0 s",
        "training 50% 30 s, about 30 s left",
    ]


def test_a_stage_that_comes_back_keeps_its_clock(capsys, monkeypatch):
    clock = iter([0.0, 100.0, 110.0, 130.0, 140.0, 300.0, 310.0, 320.0, 330.0])
    monkeypatch.setattr(bars, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    update = bars.Progress("training", 200, bars._line_writer("training", 0))
    update(1)
    for stage, done in (("validating", 0), ("validating", 1), ("training", 2), ("validating", 200),
                        ("training", 3), ("validating", 200), ("training", 200)):  # fmt: skip
        update(done, total=200, description=stage)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(",")[0] for line in lines] == [
        "training 0% 100 s", "validating 0% 0 s", "validating 0% 20 s", "training 1% 2 min",
        "validating 100% 3 min", "training 2% 5 min", "validating 100% 0 s", "training 100% 6 min",
    ]  # fmt: skip


def test_progress_is_silent_on_other_ranks(capsys, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    with bars.progress_bar("training", total=200, log_every_seconds=0) as progress:
        progress(100)
    assert capsys.readouterr().err == ""


def test_progress_on_a_terminal_draws_a_bar_on_stderr(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with bars.progress_bar("training", total=200) as progress:
        progress(100, status="loss 3.2")
        progress(200, status="loss 3.1", total=200)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "100%" in captured.err
    assert "loss 3.1" in captured.err


def test_a_bar_goes_on_to_another_stage(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with bars.progress_bar("training") as progress:
        progress(5000, total=10_000, status="5,000 words", description="counting words")
        progress(0.25, total=1.0, status="loss 3.1", description="training")
    last = capsys.readouterr().err.rstrip().rsplit("\r", 1)[-1]
    assert "training" in last
    assert "25%" in last
    assert "words" not in last


def test_the_clock_of_a_bar_goes_on_when_its_stage_comes_back(capsys, monkeypatch):
    clock = iter([0.0, 60.0, 100.0, 130.0])
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr(bars, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    with bars.progress_bar("training", total=200) as progress:
        progress(100)
        progress(1, total=9, description="validating")
        progress(110, total=200, description="training")
    assert "0:02:1" in capsys.readouterr().err.rstrip().rsplit("\r", 1)[-1]


def test_the_time_left_does_not_swing_with_a_slow_start_and_validations():
    now, estimates = 100.0, []
    times = bars.StageTimes("training", now)
    times.estimate("training", 0, 1000, now)
    now += 300  # compiling, filling caches
    for done in range(1, 1000):
        now += 1.5 if done % 2 else 0.5
        seconds = times.estimate("training", done, 1000, now)
        if seconds is not None:
            estimates.append((1000 - done, seconds))
        if done % 100 == 0:
            times.estimate("validating", 0, 10, now)
            now += 500
            times.estimate("validating", 10, 10, now)
    assert len(estimates) > 900
    settled = estimates[400:]  # the start is forgotten
    assert all(0.9 * true < seconds < 1.15 * true + 2 for true, seconds in settled)
    assert all(seconds < 320 * true for true, seconds in estimates)


def test_pieces_of_work_that_take_minutes_do_not_slow_the_pace_while_they_last():
    times = bars.StageTimes("runs", 0.0)
    times.estimate("runs", 0, 10, 0.0)
    for now in range(10, 600, 10):
        assert times.estimate("runs", 0, 10, float(now)) is None
    assert times.estimate("runs", 1, 10, 600.0) == 5400.0
    for now in range(610, 1200, 10):  # reports of a run's epochs
        assert times.estimate("runs", 1, 10, float(now)) == 5400.0 - (now - 600)
    assert times.estimate("runs", 1, 10, 1199.0) == 4801.0
    assert times.estimate("runs", 1, 10, 9999.0) == 4800.0  # the second takes longer; eight follow
    times = bars.StageTimes("runs", 0.0)
    times.estimate("runs", 0, 10, 0.0)
    times.estimate("runs", 1, 10, 600.0)
    assert times.estimate("runs", 2, 10, 1200.0) == 4800.0
    assert times.estimate("runs", 3, 10, 1320.0) == 7 * (450 + 120) / 1.75  # older runs count half


def test_a_stage_that_comes_back_keeps_its_pace_and_one_that_restarts_does_not():
    times = bars.StageTimes("training", 0.0)
    times.estimate("training", 10, 20, 0.0)
    assert times.estimate("training", 12, 20, 2.0) == 8.0
    times.estimate("scoring dev", 0, 5, 50.0)
    assert times.estimate("scoring dev", 5, 5, 60.0) is None
    assert times.estimate("training", 13, 20, 61.0) == 7.0
    assert times.estimate("scoring dev", 0, 5, 70.0) is None
