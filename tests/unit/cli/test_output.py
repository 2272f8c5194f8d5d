import errno
import io
import json
import logging
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from elmokit.cli import output as common
from elmokit.errors import ConfigError, InputError, MissingExtraError


@dataclass(frozen=True)
class Report:
    path: Path
    scores: np.ndarray
    word: str


def test_json_is_one_object_on_stdout(capsys):
    report = Report(Path("a/b"), np.array([1.5, np.nan]), "눈")
    common.emit_json({"report": report, "count": np.int64(3), "best": float("inf"), "ok": True})
    captured = capsys.readouterr()
    assert json.loads(captured.out) == {
        "report": {"path": "a/b", "scores": [1.5, None], "word": "눈"},
        "count": 3,
        "best": None,
        "ok": True,
    }
    assert captured.err == ""
    assert captured.out.count("\n") == 1


def test_json_is_ascii_where_the_stream_is(monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(raw, encoding="ascii"))
    common.emit_json({"word": "눈"})
    assert json.loads(raw.getvalue()) == {"word": "눈"}


@pytest.mark.parametrize(
    ("error", "code_is_2", "words"),
    [
        (InputError("`x` must be 3, got 4."), True, "error: `x` must be 3"),
        (ValueError("shapes do not match"), False, "error: ValueError: shapes"),
        (TypeError("not callable"), False, "error: TypeError: not callable"),
        (UnicodeDecodeError("utf-8", b"x", 0, 1, "bad"), False, "error: UnicodeDecodeError"),
        (ConfigError("recipe.toml: unknown setting"), True, "error: recipe.toml"),
        (MissingExtraError("kiwipiepy", extra="ko"), True, r"elmokit\[ko\]"),
        (FileNotFoundError(2, "No such file or directory", "a.txt"), True, "directory: a.txt"),
        (FileNotFoundError("no model named 'x'"), True, "error: no model named 'x'"),
        (IsADirectoryError(21, "Is a directory", "a"), True, r"directory: a\nA file is needed"),
        (NotADirectoryError(20, "Not a directory", "a/b"), True, r"a/b\nA part of this path"),
        (PermissionError(13, "Permission denied", "a"), True, r"denied: a\nChange the permissions"),
        (PermissionError(1, "Operation not permitted"), False, "error: PermissionError"),
        (FileExistsError(17, "File exists", "a"), True, r"File exists: a\nGive another name"),
        (OSError(5, "Input/output error", "a"), False, "Input/output error: a"),
        (RuntimeError("boom"), False, "error: RuntimeError: boom"),
        (MemoryError(), False, "error: MemoryError"),
        (OSError(errno.ENOSPC, "No space left on device", "o.h5"), False, "disk is full.*o.h5,"),
        (OSError(errno.ENOSPC, "No space left on device"), False, "could not write standard out"),
        (OSError(errno.EFBIG, "File too large", "o.h5"), False, "o.h5 would be larger.*ulimit -f"),
        (OSError(errno.EDQUOT, "Disk quota exceeded", "o.h5"), False, "share of the disk.*o.h5"),
        (ValueError("write failed: No space left on device (os error 28)"), False, "disk is full"),
    ],
)
def test_errors_become_a_message(error, code_is_2, words, capsys):
    assert common.is_user_error(error) is code_is_2
    common.print_error(error, debug=False)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Traceback" not in captured.err
    assert ("--debug" in captured.err) is not code_is_2
    with pytest.raises(AssertionError, match=words):
        raise AssertionError(captured.err)


def test_a_full_disk_says_how_to_go_on(capsys):
    error = OSError(errno.ENOSPC, "No space left on device", "run/checkpoints/step-8")
    common.print_error(error, debug=False)
    assert "MB free there. Free space, then run the command again." in capsys.readouterr().err
    with (
        pytest.raises(OSError, match="No space") as raised,
        common.say_what_is_safe(lambda: "step 40 is saved; go on with --resume"),
    ):
        raise error
    common.print_error(raised.value, debug=False)
    message = capsys.readouterr().err
    assert "run the command again" not in message, "that is refused where a run stands"
    assert "step 40 is saved; go on with --resume" in message


def test_other_errors_have_no_such_note():
    with pytest.raises(InputError) as raised, common.say_what_is_safe(lambda: "saved"):
        raise InputError("wrong")
    assert not hasattr(raised.value, "__notes__")


def test_debug_shows_the_traceback(capsys):
    try:
        raise ValueError("bad")
    except ValueError as error:
        common.print_error(error, debug=True)
    assert "Traceback" in capsys.readouterr().err


def test_an_interrupt_says_what_is_saved(capsys):
    with (
        pytest.raises(KeyboardInterrupt) as raised,
        common.say_what_is_safe(lambda: "step 40 is saved in run/last; go on with --resume"),
    ):
        raise KeyboardInterrupt
    common.print_error(raised.value, debug=False)
    message = capsys.readouterr().err
    assert "interrupted" in message
    assert "step 40 is saved" in message


def test_progress_without_a_terminal_writes_lines_now_and_then(capsys):
    with common.progress_bar("training", total=200, log_every_seconds=0) as progress:
        progress(100, status="loss 3.2")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "training 50%" in captured.err
    assert "loss 3.2" in captured.err


def test_progress_elsewhere_tells_the_time_left(capsys, monkeypatch):
    clock = iter([0.0, 30.0, 60.0, 90.0, 200.0])
    monkeypatch.setattr(common.time, "monotonic", lambda: next(clock))
    update = common._line_writer("training", None, 0)
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
    monkeypatch.setattr(common.time, "monotonic", lambda: next(clock))
    update = common._line_writer("training", 200, 0)
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
    monkeypatch.setattr(common.time, "monotonic", lambda: next(clock))
    update = common._line_writer("training", None, 0)
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
    with common.progress_bar("training", total=200, log_every_seconds=0) as progress:
        progress(100)
    assert capsys.readouterr().err == ""


def test_progress_on_a_terminal_draws_a_bar_on_stderr(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with common.progress_bar("training", total=200) as progress:
        progress(100, status="loss 3.2")
        progress(200, status="loss 3.1", total=200)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "100%" in captured.err
    assert "loss 3.1" in captured.err


def test_a_bar_goes_on_to_another_stage(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with common.progress_bar("training") as progress:
        progress(5000, total=10_000, status="5,000 words", description="counting words")
        progress(0.25, total=1.0, status="loss 3.1", description="training")
    last = capsys.readouterr().err.rstrip().rsplit("\r", 1)[-1]
    assert "training" in last
    assert "25%" in last
    assert "words" not in last


def test_logs_go_to_stderr_once(capsys):
    common.configure_logging()
    common.configure_logging()
    logging.getLogger("elmokit.corpus").warning("2 lines skipped")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "elmokit: warning: 2 lines skipped\n"
