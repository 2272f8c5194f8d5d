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
    monkeypatch.setattr(bars.time, "monotonic", lambda: next(clock))
    update = bars.Progress("training", None, bars._line_writer("training", 0))
    update(1, total=200)  # too little to say when it ends
    update(50)
    update(100, status="loss 3.2")
    update(200)
    assert capsys.readouterr().err.splitlines() == [
        "training 0% 30 s",
        "training 25% 60 s, about 2 min left",
        "training 50% 90 s, about 2 min left loss 3.2",
        "training 100% 200 s",
    ]


def test_the_time_left_of_a_resumed_job_counts_what_this_call_did(capsys, monkeypatch):
    clock = iter([0.0, 10.0, 70.0, 130.0])
    monkeypatch.setattr(bars.time, "monotonic", lambda: next(clock))
    update = bars.Progress("training", 200, bars._line_writer("training", 0))
    update(100)
    update(101)
    update(120)
    assert capsys.readouterr().err.splitlines() == [
        "training 50% 10 s",
        "training 50% 70 s",  # 101 of 200
        "training 60% 130 s, about 8 min left",
    ]


def test_another_stage_begins_its_own_clock_and_total(capsys, monkeypatch):
    clock = iter([0.0, 60.0, 90.0, 120.0])
    monkeypatch.setattr(bars.time, "monotonic", lambda: next(clock))
    update = bars.Progress("training", None, bars._line_writer("training", 0))
    update(4000, total=8000, description="counting words")
    update(0, description="training")
    update(0.5, total=1.0, description="training")
    assert capsys.readouterr().err.splitlines() == [
        "counting words 50% 0 s",
        "training 0 0 s",
        "training 50% 30 s, about 1 min left",
    ]


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
